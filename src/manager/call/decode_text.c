/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text into a tree, within the limits of decode.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/strbuf.h"
#include "manager/call/decode.h"

static int decode_refuse_text(struct aq_error *err, const char *why)
{
    return aq_fail_as(err, EINVAL, "invalid-api-params", "body", "%s", why);
}

/* What a text asks of the parser, strings aside: it recurses, and makes some hundred bytes of
 * every value. So this is looked at before.
 */
struct decode_cost {
    size_t depth; /* of nesting */
    size_t values;
};

static struct decode_cost decode_json_cost(const char *text, size_t len)
{
    struct decode_cost cost = { .values = 1 };
    bool in_string = false;
    size_t depth = 0;

    for (size_t i = 0; i < len; i++) {
        if (in_string) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_string = false;
        } else if (text[i] == '"') {
            in_string = true;
        } else if (text[i] == '{' || text[i] == '[') {
            depth++;
            cost.depth = AQ_MAX(cost.depth, depth);
            cost.values++;
        } else if (text[i] == ',') {
            cost.values++;
        } else if ((text[i] == '}' || text[i] == ']') && depth > 0) {
            depth--;
        }
    }
    return cost;
}

/* Whether a text in it has NUL; the names that lead there are appended to 'path'. */
static bool decode_find_nul(json_t *value, struct strbuf *path)
{
    size_t len = path->len, i;
    const char *name;
    json_t *member;

    if (json_is_string(value))
        return strlen(json_string_value(value)) < json_string_length(value);
    json_object_foreach(value, name, member) {
        strbuf_addf(path, "%s%s", len ? "." : "", name);
        if (decode_find_nul(member, path))
            return true;
        strbuf_truncate(path, len);
    }
    json_array_foreach(value, i, member)
        if (decode_find_nul(member, path))
            return true;
    return false;
}

/* The member that has a text with NUL is named. */
static int decode_refuse_member(const char *text, size_t len, const char *why, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *tree = json_load_text(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool is_found = decode_find_nul(tree, &path) && path.len;

    return aq_fail_as(err, EINVAL, "invalid-api-params", is_found ? path.data : "body", "%s", why);
}

/* Bytes of the number at the front. */
static size_t decode_number_len(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] && strchr("0123456789+-.eE", text[n]))
        n++;
    return n;
}

/* Not zero, but so near to it that a double might be: below 1e-300. */
static bool decode_is_tiny(const char *text, size_t len)
{
    int64_t place = 0, exponent = 0; /* powers of ten: of the first digit but 0, and negative */
    bool is_behind = false, is_seen = false;
    size_t at = 0;

    for (; at < len && text[at] != 'e' && text[at] != 'E'; at++) {
        bool is_digit = text[at] >= '0' && text[at] <= '9';

        if (is_digit && is_behind && !is_seen)
            place--;
        else if (is_digit && !is_behind && is_seen)
            place++;
        is_behind |= text[at] == '.';
        is_seen |= is_digit && text[at] != '0';
    }
    if (at + 1 < len && text[at + 1] == '-')
        for (at += 2; at < len && exponent < 1000000; at++)
            exponent = exponent * 10 + (text[at] - '0');
    return is_seen && place - exponent < -300;
}

/* Where such a number is in text that is JSON; *ret_len 0 = nowhere. */
static size_t decode_find_tiny(const char *text, size_t len, size_t *ret_len)
{
    bool in_string = false;

    for (size_t at = 0; at < len; at++) {
        size_t n = in_string ? 0 : decode_number_len(text + at, len - at);

        if (in_string && text[at] == '\\') {
            at++;
        } else if (text[at] == '"') {
            in_string = !in_string;
        } else if (n && decode_is_tiny(text + at, n)) {
            *ret_len = n;
            return at;
        } else if (n) {
            at += n - 1;
        }
    }
    *ret_len = 0;
    return 0;
}

/* The tree has 0 in its place, so it is parsed again with a mark there. */
static int decode_refuse_tiny(const char *text, size_t len, size_t at, size_t number_len,
                              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf marked = STRBUF_INIT;

    strbuf_add(&marked, text, at);
    strbuf_adds(&marked, "\"\\u0000\"");
    strbuf_add(&marked, text + at + number_len, len - at - number_len);
    return decode_refuse_member(marked.data, marked.len,
                                "is too close to 0; give 0 or a larger number", err);
}

static int decode_text(const char *text, size_t len, size_t values_max, size_t flags, json_t **ret,
                       struct aq_error *err)
{
    const struct decode_cost cost = decode_json_cost(text, len);
    char why[sizeof(err->text)];
    size_t at, number_len;
    json_error_t parse;
    json_t *json;

    if (cost.depth > DECODE_DEPTH_MAX) {
        snprintf(why, sizeof(why), "nested deeper than %d", DECODE_DEPTH_MAX);
        return decode_refuse_text(err, why);
    }
    if (cost.values > values_max) {
        snprintf(why, sizeof(why), "more than %zu values", values_max);
        return decode_refuse_text(err, why);
    }
    json = json_load_text(text, len, flags | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &parse);
    if (json) {
        at = decode_find_tiny(text, len, &number_len);
        if (!number_len) {
            *ret = json;
            return 0;
        }
        json_decref(json);
        return decode_refuse_tiny(text, len, at, number_len, err);
    }
    if (json_error_code(&parse) == json_error_null_character) /* C strings would end there */
        return decode_refuse_member(text, len, "contains NUL (\\u0000); remove it", err);
    snprintf(why, sizeof(why), "not valid JSON: %s at line %d column %d", parse.text, parse.line,
             parse.column);
    return decode_refuse_text(err, why);
}

int decode_json(const char *text, size_t len, json_t **ret, struct aq_error *err)
{
    return decode_text(text, len, DECODE_VALUES_MAX, 0, ret, err);
}

int decode_large_json(const char *text, size_t len, size_t values_max, json_t **ret,
                      struct aq_error *err)
{
    return decode_text(text, len, values_max, 0, ret, err);
}

int decode_output_json(const char *text, size_t len, json_t **ret, struct aq_error *err)
{
    return decode_text(text, len, DECODE_VALUES_MAX, JSON_ALLOW_NUL, ret, err);
}
