/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text into a tree, within the limits of decode.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/strbuf.h"
#include "manager/request/decode.h"

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

/* Texts are C strings from here on: NUL would cut a name, or a password. */
static int decode_refuse_nul(const char *text, size_t len, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *tree = json_load_text(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    if (!decode_find_nul(tree, &path) || !strbuf_ok(&path))
        return decode_refuse_text(err, "has NUL (\\u0000) in a text; remove it");
    return aq_fail_as(err, EINVAL, "invalid-api-params", path.len ? path.data : "body",
                      "has NUL (\\u0000); remove it");
}

static int decode_text(const char *text, size_t len, size_t values_max, size_t flags, json_t **ret,
                       struct aq_error *err)
{
    const struct decode_cost cost = decode_json_cost(text, len);
    char why[sizeof(err->text)];
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
        *ret = json;
        return 0;
    }
    if (json_error_code(&parse) == json_error_out_of_memory)
        return aq_fail_oom(err);
    if (json_error_code(&parse) == json_error_null_character)
        return decode_refuse_nul(text, len, err);
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
