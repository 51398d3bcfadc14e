/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - parses and checks the answers of a plugin process */
#include "accelhost/answer_internal.h"

#include <errno.h>
#include <string.h>

int answer_parse(const char *line, size_t len, int64_t *ret_id, json_t **ret_result,
                 struct aq_error *ret_why, struct aq_error *err)
{
    json_error_t where;
    json_t *answer = json_loadb(line, len, JSON_REJECT_DUPLICATES, &where);
    json_t *result = json_object_get(answer, "result");
    const char *why = json_string_value(json_object_get(answer, "error"));
    int64_t id = json_integer_value(json_object_get(answer, "id"));

    if (!json_is_object(answer) || !json_is_integer(json_object_get(answer, "id")) || id < 0
        || json_is_object(result) == (why != NULL)) {
        json_decref(answer);
        return aq_fail(err, EINVAL, "it answers with something that is no answer: %.80s",
                       answer ? "a member is missing" : where.text);
    }
    *ret_id = id;
    *ret_result = why ? NULL : json_incref(result);
    if (why)
        (void)aq_fail(ret_why, EIO, "%.200s", *why ? why : "it does not say why");
    json_decref(answer);
    return 0;
}

/* ---- members ---- */

void answer_reject(struct answer_reader *in, const char *member, const char *why)
{
    if (in->r == 0)
        in->r = aq_fail_field(in->err, EINVAL, in->name, "%s '%.64s': %s %s", in->what, in->name,
                              member, why);
}

int64_t answer_int(struct answer_reader *in, const char *member, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(in->from, member);
    int64_t got = json_integer_value(value);

    if (value && !json_is_integer(value))
        answer_reject(in, member, "is not a whole number");
    else if (got < min || got > max)
        answer_reject(in, member, "is out of range");
    return got;
}

const char *answer_text(struct answer_reader *in, const char *member, size_t max)
{
    const json_t *value = json_object_get(in->from, member);
    char *copy;

    if (!value || json_is_null(value))
        return NULL;
    if (!json_is_string(value) || json_string_length(value) > max
        || strlen(json_string_value(value)) != json_string_length(value)) {
        answer_reject(in, member, "is not a text, or too long");
        return NULL;
    }
    copy = arena_strdup(in->arena, json_string_value(value));
    for (char *c = copy; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    }
    return copy;
}

const char *answer_need_text(struct answer_reader *in, const char *member, size_t max)
{
    const char *text = answer_text(in, member, max);

    if (!text || !text[0])
        answer_reject(in, member, "is missing");
    return text ? text : "";
}

size_t answer_list(struct answer_reader *in, const json_t *result, const char *name, size_t max,
                   const json_t **ret)
{
    const json_t *list = json_object_get(result, name);

    *ret = list;
    if (list && !json_is_array(list))
        answer_reject(in, name, "is not a list");
    else if (json_array_size(list) > max)
        answer_reject(in, name, "has too many elements");
    return in->r == 0 ? json_array_size(list) : 0;
}
