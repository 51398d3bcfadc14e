/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_wire.c - see etcd_wire.h */
#include "manager/etcd/etcd_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "base/vec.h"

#define BASE64 sodium_base64_VARIANT_ORIGINAL
#define CODE_FAILED_PRECONDITION 9 /* codes of gRPC */
#define CODE_UNAUTHENTICATED 16

/* ---- requests ---- */

static void etcd_write_bytes(struct jsonw *w, const char *name, const char *bytes, size_t len)
{
    size_t size = sodium_base64_encoded_len(len, BASE64);
    AQ_CLEANUP(aq_freep) char *text = aq_alloc(size);

    (void)sodium_bin2base64(text, size, (const unsigned char *)bytes, len, BASE64);
    jsonw_member_str(w, name, text);
}

static void etcd_write_number(struct jsonw *w, const char *name, int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    jsonw_member_str(w, name, text);
}

void etcd_write_range(struct strbuf *out, const struct etcd_range *range)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    etcd_write_bytes(&w, "key", range->key, range->key_len);
    if (range->end)
        etcd_write_bytes(&w, "range_end", range->end, strlen(range->end));
    etcd_write_number(&w, "limit", range->limit);
    etcd_write_number(&w, "revision", range->revision);
    etcd_write_number(&w, "min_mod_revision", range->newer);
    jsonw_member_bool(&w, "keys_only", range->keys_only);
    jsonw_object_end(&w);
}

void etcd_write_watch(struct strbuf *out, const char *begin, const char *end, int64_t revision)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "create_request");
    jsonw_object_begin(&w);
    etcd_write_bytes(&w, "key", begin, strlen(begin));
    etcd_write_bytes(&w, "range_end", end, strlen(end));
    etcd_write_number(&w, "start_revision", revision);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
}

void etcd_write_login(struct strbuf *out, const char *user, const char *password)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "name", user);
    jsonw_member_str(&w, "password", password);
    jsonw_object_end(&w);
}

static void etcd_write_compare(struct jsonw *w, const struct etcd_put *put)
{
    jsonw_object_begin(w);
    etcd_write_bytes(w, "key", put->key, put->key_len);
    jsonw_member_str(w, "target", "MOD");
    jsonw_member_str(w, "result", "EQUAL");
    etcd_write_number(w, "mod_revision", put->mod_revision);
    jsonw_object_end(w);
}

static void etcd_write_put(struct jsonw *w, const struct etcd_put *put)
{
    jsonw_object_begin(w);
    jsonw_key(w, put->value ? "request_put" : "request_delete_range");
    jsonw_object_begin(w);
    etcd_write_bytes(w, "key", put->key, put->key_len);
    if (put->value)
        etcd_write_bytes(w, "value", put->value, strlen(put->value));
    jsonw_object_end(w);
    jsonw_object_end(w);
}

void etcd_write_txn(struct strbuf *out, const struct etcd_put *puts, size_t count)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "compare");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count; i++)
        etcd_write_compare(&w, &puts[i]);
    jsonw_array_end(&w);
    jsonw_key(&w, "success");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count; i++)
        etcd_write_put(&w, &puts[i]);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
}

/* ---- answers ---- */

void etcd_pairs_done(struct etcd_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->items[i].key);
        free(pairs->items[i].value);
    }
    free(pairs->items);
    *pairs = (struct etcd_pairs){ 0 };
}

static int etcd_fail_answer(struct aq_error *err, const char *what)
{
    return aq_fail(err, EPROTO, "invalid answer of etcd: %s", what);
}

/* An error with etcd's own text, and the kind that callers act on. */
static int etcd_fail_refused(struct aq_error *err, const char *text, int64_t code)
{
    const char *kind = NULL;

    if (code == CODE_UNAUTHENTICATED || strstr(text, "invalid auth token")
        || strstr(text, "revision of auth store is old"))
        kind = ETCD_TOKEN_REFUSED;
    else if (strstr(text, "has been compacted"))
        kind = ETCD_COMPACTED;
    else if (code == CODE_FAILED_PRECONDITION && strstr(text, "not enabled"))
        kind = ETCD_NO_USERS;
    return aq_fail_kind(err, EACCES, kind, "etcd refused the request: %.200s", text);
}

/* *ret is 0 if the member is absent. False: it is not a number. */
static bool etcd_get_unsigned(const json_t *object, const char *name, uint64_t *ret)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    uint64_t number = 0;

    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *ret = (uint64_t)json_integer_value(value);
        return true;
    }
    if (!value) {
        *ret = 0;
        return true;
    }
    if (!text || !*text || strspn(text, "0123456789") != strlen(text))
        return false;
    for (; *text; text++) {
        unsigned digit = (unsigned)(*text - '0');

        if (number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret = number;
    return true;
}

static bool etcd_get_number(const json_t *object, const char *name, int64_t *ret)
{
    uint64_t number;

    if (!etcd_get_unsigned(object, name, &number) || number > INT64_MAX)
        return false;
    *ret = (int64_t)number;
    return true;
}

/* The decoded member, NUL-terminated, to be freed; empty if it is absent. NULL = not base64. */
static char *etcd_get_bytes(const json_t *object, const char *name, size_t *ret_len)
{
    const json_t *value = json_object_get(object, name);
    const char *text = value ? json_string_value(value) : "";
    size_t max;
    AQ_CLEANUP(aq_freep) char *bytes = NULL;

    if (!text)
        return NULL;
    max = strlen(text) / 4 * 3 + 3;
    bytes = aq_alloc(max + 1);
    if (sodium_base642bin((unsigned char *)bytes, max, text, strlen(text), NULL, ret_len, NULL,
                          BASE64)
        < 0)
        return NULL;
    bytes[*ret_len] = '\0';
    return AQ_TAKE(bytes);
}

static int etcd_load(const char *text, size_t len, json_t **ret, struct aq_error *err)
{
    json_t *root = json_load_text(text, len, 0, NULL);

    if (!json_is_object(root)) {
        json_decref(root);
        return etcd_fail_answer(err, "it is not a JSON object");
    }
    *ret = root;
    return 0;
}

/* The answer to a call, which the caller releases with json_decref(). */
static int etcd_load_answer(int status, const char *text, size_t len, json_t **ret,
                            struct aq_error *err)
{
    json_t *root = NULL;
    const char *error;
    int64_t code;
    int r = etcd_load(text, len, &root, err);

    if (r < 0)
        return status == 200 ? r
                             : aq_fail(err, EPROTO, "etcd answered with HTTP status %d", status);
    error = json_string_value(json_object_get(root, "error"));
    if (!etcd_get_number(root, "code", &code))
        code = 0;
    if (status == 200 && !error) {
        *ret = root;
        return 0;
    }
    r = error ? etcd_fail_refused(err, error, code)
              : aq_fail(err, EPROTO, "etcd answered with HTTP status %d", status);
    json_decref(root);
    return r;
}

static int etcd_read_header(const json_t *answer, struct etcd_header *ret, struct aq_error *err)
{
    const json_t *header = json_object_get(answer, "header");
    struct etcd_header found;

    if (!json_is_object(header) || !etcd_get_unsigned(header, "cluster_id", &found.cluster_id)
        || !etcd_get_number(header, "revision", &found.revision))
        return etcd_fail_answer(err, "it has no header");
    *ret = found;
    return 0;
}

static int etcd_read_pair(const json_t *pair, bool is_gone, struct etcd_pairs *into,
                          struct aq_error *err)
{
    struct etcd_pair found = { .is_gone = is_gone };
    int64_t lease;

    if (into->count >= ETCD_PAIRS_MAX)
        return aq_fail(err, E2BIG, "etcd answered with more than %d keys", ETCD_PAIRS_MAX);
    if (!json_is_object(pair) || !etcd_get_number(pair, "mod_revision", &found.mod_revision)
        || !etcd_get_number(pair, "lease", &lease))
        return etcd_fail_answer(err, "a key has no revision");
    found.key = etcd_get_bytes(pair, "key", &found.key_len);
    found.value = etcd_get_bytes(pair, "value", &found.value_len);
    found.has_lease = lease != 0;
    if (!found.key || !found.value || !found.key_len) {
        free(found.key);
        free(found.value);
        return etcd_fail_answer(err, "a key or value is not base64");
    }
    vec_grow(&into->items, &into->cap, into->count + 1, sizeof(*into->items));
    into->items[into->count++] = found;
    return 0;
}

int etcd_read_range(int status, const char *text, size_t len, struct etcd_range_answer *ret,
                    struct aq_error *err)
{
    struct etcd_range_answer answer = { .count = 0 };
    json_auto_t *root = NULL;
    const json_t *pairs, *pair;
    size_t i;
    int r = etcd_load_answer(status, text, len, &root, err);

    if (r == 0)
        r = etcd_read_header(root, &answer.header, err);
    if (r == 0 && !etcd_get_number(root, "count", &answer.count))
        r = etcd_fail_answer(err, "the count of keys is not a number");
    if (r < 0)
        return r;
    answer.has_more = json_is_true(json_object_get(root, "more"));
    pairs = json_object_get(root, "kvs");
    json_array_foreach(pairs, i, pair)
        if ((r = etcd_read_pair(pair, false, &answer.pairs, err)) < 0)
            break;
    if (r < 0)
        etcd_pairs_done(&answer.pairs);
    else
        *ret = answer;
    return r;
}

/* Fail with etcd's reason if it ended the watch, which the first answer can do, too. */
static int etcd_check_watch(const json_t *root, const json_t *result, struct aq_error *err)
{
    const json_t *error = json_object_get(root, "error");
    const char *text = json_string_value(error);
    const char *reason = json_string_value(json_object_get(result, "cancel_reason"));

    if (json_is_object(error))
        text = json_string_value(json_object_get(error, "message"));
    if (error)
        return etcd_fail_refused(err, text ? text : "the watch failed", 0);
    if (!json_is_object(result))
        return etcd_fail_answer(err, "a line of the watch has no result");
    if (json_object_get(result, "compact_revision"))
        return etcd_fail_refused(err, "the revision has been compacted", 0);
    if (json_is_true(json_object_get(result, "canceled")))
        return etcd_fail_refused(err, reason ? reason : "the watch was cancelled", 0);
    return 0;
}

int etcd_read_watch(const char *text, size_t len, struct etcd_watch_answer *ret,
                    struct aq_error *err)
{
    struct etcd_watch_answer answer = { .is_created = false };
    json_auto_t *root = NULL;
    const json_t *result, *events, *event;
    size_t i;
    int r = etcd_load(text, len, &root, err);

    if (r < 0)
        return r;
    result = json_object_get(root, "result");
    r = etcd_check_watch(root, result, err);
    if (r == 0)
        r = etcd_read_header(result, &answer.header, err);
    if (r < 0)
        return r;
    answer.is_created = json_is_true(json_object_get(result, "created"));
    events = json_object_get(result, "events");
    json_array_foreach(events, i, event) {
        const char *type = json_string_value(json_object_get(event, "type"));

        r = etcd_read_pair(json_object_get(event, "kv"), type && strcmp(type, "DELETE") == 0,
                           &answer.pairs, err);
        if (r < 0)
            break;
    }
    if (r < 0)
        etcd_pairs_done(&answer.pairs);
    else
        *ret = answer;
    return r;
}

int etcd_read_txn(int status, const char *text, size_t len, struct etcd_header *ret, bool *ret_made,
                  struct aq_error *err)
{
    json_auto_t *root = NULL;
    int r = etcd_load_answer(status, text, len, &root, err);

    if (r == 0)
        r = etcd_read_header(root, ret, err);
    if (r == 0)
        *ret_made = json_is_true(json_object_get(root, "succeeded"));
    return r;
}

int etcd_read_login(int status, const char *text, size_t len, char **ret, struct aq_error *err)
{
    json_auto_t *root = NULL;
    const char *token;
    int r = etcd_load_answer(status, text, len, &root, err);

    if (r < 0)
        return r;
    token = json_string_value(json_object_get(root, "token"));
    if (!token || !*token || strlen(token) > ETCD_TOKEN_MAX)
        return etcd_fail_answer(err, "it has no token");
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            return etcd_fail_answer(err,
                                    "the token has characters that are not allowed in a header");
    *ret = aq_strdup(token);
    return 0;
}
