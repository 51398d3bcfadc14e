/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are sent again because their answer was lost. */
#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "manager/call/repeat.h"
#include "model/accounts.h"
#include "store/request_answer.h"

#define HEADER "Idempotency-Key"
#define DIGEST_MAX (2 * SHA256_DIGEST_SIZE + 1)

#define LATELY 16384 /* keys; 128 KiB once they are used */
#define KEPT_USEC (86400 * USEC_PER_SEC)
#define KEPT_EACH 100000 /* of a keypair */
#define TRIM_AFTER 10000 /* more of it */
#define AT_A_TIME 1000   /* rows that are removed */
#define PRUNE_USEC (600 * USEC_PER_SEC)

#define REPEATED 4096  /* signatures that were seen again lately */
#define REPEATS_MAX 10 /* of each */

struct repeat {
    struct api *api;
    struct request *req;
    const struct repeat_handler *handler;
    const char *key; /* the client's, or "~" and the signature */
    bool is_named;   /* by the client */
    bool is_seen;    /* the signature was accepted before */
    bool was_read;   /* and found or not */
    char digest[DIGEST_MAX];
    struct aq_error err; /* why it failed; err.code 0 = it was not made yet */
    const char *err_data;
    int unmade_status; /* of the answer if it made nothing now or before; 0 = it did not come so far */
    const char *unmade_body;
    struct request_answer answer;
};

static struct repeat *repeat_of(struct request *req)
{
    return api_principal(req)->repeat;
}

/* ---- the head ---- */

int repeat_read_key(const char *header, char ret[REPEAT_KEY_MAX + 1], struct aq_error *err)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:+/=";
    size_t len = strlen(header);
    bool is_quoted = len >= 2 && header[0] == '"' && header[len - 1] == '"';

    len -= is_quoted ? 2 : 0;
    header += is_quoted;
    if (len == 0 || len > REPEAT_KEY_MAX || strspn(header, allowed) < len)
        return api_fail_param(err, HEADER,
                              "must be 1 to %d letters, digits and - . _ : + / =, such as a UUID",
                              REPEAT_KEY_MAX);
    memcpy(ret, header, len);
    ret[len] = '\0';
    return 0;
}

int repeat_admit(struct request *req, const struct route *route, struct principal *who,
                 struct aq_error *err)
{
    const char *header = request_get_header(req, HEADER);
    bool is_kept = route->role & API_ANSWERED_ONCE;
    char key[REPEAT_KEY_MAX + 1] = "";
    struct repeat *repeat;
    int r;

    if (header && !is_kept)
        return api_fail_param(err, HEADER,
                              "is not taken here: no answer of this route is kept; leave it out");
    if (!is_kept)
        return 0;
    if (header && (r = repeat_read_key(header, key, err)) < 0)
        return r;
    repeat = arena_alloc(request_get_arena(req), sizeof(*repeat));
    if (header)
        repeat->key = arena_strdup(request_get_arena(req), key);
    repeat->is_named = header != NULL;
    who->repeat = repeat;
    return 0;
}

#define SIGNATURE_PART 16 /* bytes, of the requests of one keypair and microsecond */

/* The date comes first, so that what is made together lies together. */
int repeat_admit_signature(const struct api *api, struct request *req, struct principal *who,
                           const struct sign_claim *claim, int seen)
{
    struct repeat *repeat = who->repeat;
    char key[2 + 16 + 2 * SIGNATURE_PART];
    int len;

    if (!repeat || (seen < 0 && seen != -EEXIST))
        return seen;
    repeat->is_seen = seen == -EEXIST;
    if (repeat->is_seen && !kept_answers_may_repeat(api->kept_answers, claim->signature))
        return seen;
    if (repeat->key)
        return 0;
    len = snprintf(key, sizeof(key), "~%014llx", (unsigned long long)claim->date_usec);
    for (size_t i = 0; i < SIGNATURE_PART; i++)
        len += snprintf(key + len, sizeof(key) - (size_t)len, "%02x", claim->signature[i]);
    repeat->key = arena_strdup(request_get_arena(req), key);
    return 0;
}

/* ---- the answer of before ---- */

void repeat_mark(struct request *req)
{
    request_add_header(req, "Idempotent-Replayed", "true");
}

void repeat_reply(struct request *req, const struct request_answer *answer)
{
    repeat_mark(req);
    request_reply(req, answer->status, "application/json", answer->body, strlen(answer->body));
}

static void repeat_refuse_other(const struct repeat *repeat)
{
    struct aq_error err;

    if (repeat->is_named)
        aq_fail_as(&err, EINVAL, "idempotency-key-reused", HEADER,
                   "the " HEADER " '%.40s' was used for another request; "
                   "a new request needs a new key",
                   repeat->key);
    else
        aq_fail_kind(&err, EEXIST, "auth-failed",
                     "This signed request was already made; sign it again");
    request_fail(repeat->req, &err);
}

static void repeat_on_found(struct repeat *repeat)
{
    if (strcmp(repeat->answer.digest, repeat->digest) != 0)
        repeat_refuse_other(repeat);
    else if (repeat->handler->again)
        repeat->handler->again(repeat->req, repeat->api, &repeat->answer);
    else
        repeat_reply(repeat->req, &repeat->answer);
}

static void repeat_on_none(struct repeat *repeat)
{
    struct aq_error err;

    if (repeat->is_seen) {
        aq_fail_kind(&err, EEXIST, "auth-failed",
                     "This signed request was already made; sign it again");
        request_fail(repeat->req, &err);
    } else if (repeat->err.code) {
        request_fail_data(repeat->req, &repeat->err, repeat->err_data);
    } else if (repeat->unmade_status) {
        request_reply(repeat->req, repeat->unmade_status, "application/json", repeat->unmade_body,
                      strlen(repeat->unmade_body));
    } else {
        repeat->handler->make(repeat->req, repeat->api);
    }
}

/* store_tx_fn */
static int repeat_find(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct repeat *repeat = data;

    return request_answer_find(tx, api_principal(repeat->req)->access_key, repeat->key,
                               &repeat->answer, err);
}

/* store_done_fn */
static void repeat_on_read(void *data, int r, const struct aq_error *err)
{
    struct repeat *repeat = data;
    struct request_answer answer = repeat->answer; /* the request may end meanwhile */

    repeat->was_read = true;
    if (r < 0)
        request_fail(repeat->req, err);
    else if (r > 0)
        repeat_on_found(repeat);
    else
        repeat_on_none(repeat);
    request_answer_done(&answer);
}

static void repeat_read(struct repeat *repeat)
{
    store_read(core_store(repeat->api->core), repeat_find, repeat_on_read, repeat);
}

/* ---- requests ---- */

static void repeat_set_digest(struct repeat *repeat)
{
    const char *texts[] = { method_name(request_get_method(repeat->req)),
                            request_get_target(repeat->req) };
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx sha;
    const char *body;
    size_t len;

    body = request_get_body(repeat->req, &len);
    sha256_init(&sha);
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        sha256_update(&sha, strlen(texts[i]) + 1, (const uint8_t *)texts[i]);
    sha256_update(&sha, len, (const uint8_t *)body);
    sha256_digest(&sha, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(repeat->digest + 2 * i, 3, "%02x", digest[i]);
}

void repeat_start(struct api *api, struct request *req, const struct repeat_handler *handler)
{
    struct repeat *repeat = repeat_of(req);

    repeat->api = api;
    repeat->req = req;
    repeat->handler = handler;
    repeat_set_digest(repeat);
    if (repeat->is_seen
        || (repeat->is_named
            && kept_answers_know(api->kept_answers, api_principal(req)->access_key, repeat->key)))
        repeat_read(repeat);
    else
        handler->make(req, api);
}

void repeat_fill(struct request *req, struct core_answered *ret)
{
    const struct repeat *repeat = repeat_of(req);

    ret->access_key = api_principal(req)->access_key;
    ret->request_key = repeat->key;
    ret->digest = repeat->digest;
    ret->always = repeat->is_named;
}

int repeat_keep(struct store_tx *tx, struct request *req, int status, const char *body,
                struct aq_error *err)
{
    struct event *e = arena_alloc(request_get_arena(req), sizeof(*e));
    const struct repeat *repeat = repeat_of(req);

    *e = (struct event){ .kind = EVENT_REQUEST_ANSWERED, .at_usec = clock_realtime_usec() };
    e->answered.access_key = api_principal(req)->access_key;
    e->answered.request_key = repeat->key;
    e->answered.digest = repeat->digest;
    e->answered.status = status;
    e->answered.body = body;
    return request_answer_add(tx, e, err);
}

void repeat_note_answered(struct api *api, struct request *req)
{
    kept_answers_add(api->kept_answers, api_principal(req)->access_key, repeat_of(req)->key);
}

/* Signatures that were accepted are remembered, but by the manager that accepted them. */
static bool repeat_may_be_kept(const struct repeat *repeat)
{
    return repeat->is_named
           || clock_monotonic_usec() - repeat->api->started_usec < 2 * SIGN_WINDOW_USEC;
}

void repeat_fail(struct api *api, struct request *req, const struct aq_error *err, const char *data)
{
    struct repeat *repeat = repeat_of(req);

    if (err->code != EALREADY && (repeat->was_read || !repeat_may_be_kept(repeat))) {
        request_fail_data(req, err, data);
        return;
    }
    repeat->api = api;
    repeat->err = *err;
    if (data)
        repeat->err_data = arena_strdup(request_get_arena(req), data);
    repeat_read(repeat);
}

void repeat_reply_unmade(struct api *api, struct request *req, int status,
                         const struct strbuf *json)
{
    struct repeat *repeat = repeat_of(req);

    if (repeat->was_read || repeat->is_named || !repeat_may_be_kept(repeat)) {
        request_reply_json(req, status, json);
        return;
    }
    repeat->api = api;
    repeat->unmade_status = status;
    repeat->unmade_body = arena_strdup(request_get_arena(req), json->data);
    repeat_read(repeat);
}

/* ---- the answers that are kept, and their bounds ---- */

struct kept_answers {
    struct store *store;
    struct map counts;  /* access key -> how many since its last trim, as a pointer */
    int64_t prune_usec; /* monotonic: when to look again; 0 = at once */
    bool is_removing;
    char trim[ACCESS_KEY_MAX]; /* the keypair of the piece under way; "" = rows of all, by age */
    struct {
        uint32_t mark, count;
    } repeated[REPEATED];    /* each at its place */
    uint64_t lately[LATELY]; /* fingerprints of keys, each at its place */
};

struct kept_answers *kept_answers_new(struct store *store)
{
    struct kept_answers *kept = aq_alloc(sizeof(*kept));

    kept->store = store;
    return kept;
}

void kept_answers_free(struct kept_answers *kept)
{
    if (!kept)
        return;
    map_done(&kept->counts);
    free(kept);
}

static uint64_t repeat_hash_key(const char *access_key, const char *request_key)
{
    uint64_t hash = aq_hash(access_key, strlen(access_key));

    return (hash * 31 + aq_hash(request_key, strlen(request_key))) | 1; /* 0 = a free place */
}

bool kept_answers_know(const struct kept_answers *kept, const char *access_key,
                       const char *request_key)
{
    uint64_t hash = repeat_hash_key(access_key, request_key);

    return kept->lately[(hash >> 32) % LATELY] == hash;
}

void kept_answers_add(struct kept_answers *kept, const char *access_key, const char *request_key)
{
    uint64_t hash = repeat_hash_key(access_key, request_key);
    uintptr_t count = (uintptr_t)map_gets(&kept->counts, access_key);

    kept->lately[(hash >> 32) % LATELY] = hash;
    map_sets(&kept->counts, access_key, (void *)(count + 1));
}

bool kept_answers_may_repeat(struct kept_answers *kept, const uint8_t signature[32])
{
    uint64_t hash = aq_hash(signature, 32);
    size_t at = (hash >> 32) % REPEATED;

    if (kept->repeated[at].mark != (uint32_t)hash) {
        kept->repeated[at].mark = (uint32_t)hash;
        kept->repeated[at].count = 0;
    }
    return kept->repeated[at].count < REPEATS_MAX && ++kept->repeated[at].count;
}

/* ---- removal ---- */

/* store_tx_fn */
static int repeat_remove_kept(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct kept_answers *kept = data;

    return kept->trim[0]
               ? request_answers_trim(tx, kept->trim, KEPT_EACH, AT_A_TIME, err)
               : request_answers_prune(tx, clock_realtime_usec() - KEPT_USEC, AT_A_TIME, err);
}

/* store_done_fn */
static void repeat_on_kept_removed(void *data, int r, const struct aq_error *err)
{
    struct kept_answers *kept = data;

    kept->is_removing = false;
    if (r < 0)
        log_warning("old answers to requests were not removed: %s", err->text);
    if (r == AT_A_TIME)
        return; /* there is more: at the next tick */
    if (kept->trim[0])
        (void)map_removes(&kept->counts, kept->trim);
    else
        kept->prune_usec = clock_monotonic_usec() + PRUNE_USEC;
}

void kept_answers_tick(struct kept_answers *kept, int64_t now_usec)
{
    if (kept->is_removing)
        return;
    kept->trim[0] = '\0';
    for (size_t i = 0; i < kept->counts.count && !kept->trim[0]; i++)
        if ((uintptr_t)kept->counts.entries[i].value >= TRIM_AFTER)
            memcpy(kept->trim, kept->counts.entries[i].key, kept->counts.entries[i].key_len + 1);
    if (!kept->trim[0] && now_usec < kept->prune_usec)
        return;
    kept->is_removing = true;
    store_write(kept->store, repeat_remove_kept, repeat_on_kept_removed, kept);
}
