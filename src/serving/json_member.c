/* SPDX-License-Identifier: Apache-2.0 */
/* json_member.c - members of a JSON object by kind */
#include "serving/json_member.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/strbuf.h"
#include "base/suggest.h"

int json_member_load(struct json_member_file *file, const char *name, const char *text, size_t len,
                     size_t max, struct arena *arena, struct json_member *ret, struct aq_error *err)
{
    json_error_t why;

    if (len > max)
        return aq_fail_field(err, E2BIG, name, "%s: has %zu bytes; at most %zu are allowed", name,
                             len, max);
    if (!(file->root = json_load_text(text, len, JSON_REJECT_DUPLICATES, &why)))
        return aq_fail_field(err, EINVAL, name, "%s: is not valid JSON: %s", name, why.text);
    *ret = (struct json_member){ file->root, name, arena, err };
    return 0;
}

void json_member_donep(struct json_member_file *file)
{
    json_decref(file->root);
}

int json_member_refuse(const struct json_member *at, const char *key, const char *fmt, ...)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s%s%.40s", at->path, key ? "." : "",
                                                key ? key : "");
    char why[sizeof(at->err->text)];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return aq_fail_field(at->err, EINVAL, path, "%s: %s", path, why);
}

static const json_t *json_member_get(const struct json_member *at, const char *key)
{
    const json_t *value = json_object_get(at->object, key);

    return json_is_null(value) ? NULL : value;
}

bool json_member_has(const struct json_member *at, const char *key)
{
    return json_member_get(at, key) != NULL;
}

int json_member_check_keys(const struct json_member *at, const char *const *known)
{
    const json_t *value;
    const char *name;

    if (!json_is_object(at->object))
        return json_member_refuse(at, NULL, "expected an object");
    json_object_foreach((json_t *)(uintptr_t)at->object, name, value) {
        struct suggest suggest = suggest_for(name, strlen(name));
        bool is_known = false;

        for (size_t i = 0; known[i]; i++) {
            is_known |= strcmp(known[i], name) == 0;
            suggest_offer(&suggest, known[i]);
        }
        if (is_known)
            continue;
        return suggest.best ? json_member_refuse(at, name, "unknown member; did you mean '%s'?",
                                                 suggest.best)
                            : json_member_refuse(at, name, "unknown member");
    }
    return 0;
}

struct json_member json_member_object(const struct json_member *at, const char *key)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s.%s", at->path, key);

    return (struct json_member){ json_member_get(at, key), arena_strdup(at->arena, path), at->arena,
                                 at->err };
}

struct json_member json_member_item(const struct json_member *at, const char *key, size_t i)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s.%s[%zu]", at->path, key, i);

    return (struct json_member){ json_array_get(json_member_get(at, key), i),
                                 arena_strdup(at->arena, path), at->arena, at->err };
}

/* ---- values ---- */

/* A value as an error shows it, of the arena. */
static const char *json_member_show(const struct json_member *at, const json_t *value)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
    AQ_CLEANUP(aq_freep) char *cut = aq_format("%.60s", text ? text : "");

    return arena_strdup(at->arena, cut);
}

int json_member_text(const struct json_member *at, const char *key, size_t max, const char **ret)
{
    const json_t *value = json_member_get(at, key);
    size_t len = json_string_length(value);

    if (!value)
        return 0;
    if (!json_is_string(value) || len == 0 || len > max || strlen(json_string_value(value)) != len)
        return json_member_refuse(at, key, "expected a text of 1 to %zu bytes, got %s", max,
                                  json_member_show(at, value));
    *ret = arena_strdup(at->arena, json_string_value(value));
    return 0;
}

int json_member_choice(const struct json_member *at, const char *key, const char *const *words,
                       const char **ret)
{
    const json_t *value = json_member_get(at, key);
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;

    if (!value)
        return 0;
    for (size_t i = 0; words[i]; i++) {
        if (json_is_string(value) && strcasecmp(words[i], json_string_value(value)) == 0) {
            *ret = words[i];
            return 0;
        }
        strbuf_addf(&known, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    return json_member_refuse(at, key, "expected %s, got %s", known.data,
                              json_member_show(at, value));
}

int json_member_number(const struct json_member *at, const char *key, double min, double max,
                       double *ret)
{
    const json_t *value = json_member_get(at, key);
    double number = json_number_value(value);
    char *end = NULL;

    if (!value)
        return 0;
    if (json_is_string(value)) {
        number = strtod(json_string_value(value), &end);
        if (end == json_string_value(value) || *end)
            number = NAN;
    } else if (!json_is_number(value)) {
        number = NAN;
    }
    if (!(number >= min && number <= max))
        return json_member_refuse(at, key, "expected a number from %.6g to %.6g, got %s", min, max,
                                  json_member_show(at, value));
    *ret = number;
    return 0;
}

int json_member_integer(const struct json_member *at, const char *key, int64_t min, int64_t max,
                        int64_t *ret)
{
    const json_t *value = json_member_get(at, key);

    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min
        || json_integer_value(value) > max)
        return json_member_refuse(at, key,
                                  "expected an integer from %" PRId64 " to %" PRId64 ", got %s",
                                  min, max, json_member_show(at, value));
    *ret = json_integer_value(value);
    return 0;
}

int json_member_flag(const struct json_member *at, const char *key, bool *ret)
{
    const json_t *value = json_member_get(at, key);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return json_member_refuse(at, key, "expected true or false, got %s",
                                  json_member_show(at, value));
    *ret = json_is_true(value);
    return 0;
}

int json_member_seconds(const struct json_member *at, const char *key, int64_t max,
                        int64_t *ret_usec)
{
    const json_t *value = json_member_get(at, key);
    int64_t usec = -1;

    if (!value)
        return 0;
    if (json_is_string(value)) {
        if (clock_parse_duration(json_string_value(value), &usec) < 0)
            usec = -1;
    } else if (json_is_number(value) && json_number_value(value) >= 0
               && json_number_value(value) <= (double)max) {
        usec = llround(json_number_value(value) * USEC_PER_SEC);
    }
    if (usec < 0 || usec > max * USEC_PER_SEC)
        return json_member_refuse(
            at, key, "expected seconds from 0 to %" PRId64 " or a duration such as \"5m\", got %s",
            max, json_member_show(at, value));
    *ret_usec = usec;
    return 0;
}
