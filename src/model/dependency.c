/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that wait for a status or an end of others. */
#include "model/dependency.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const dependency_names[] = { [DEPENDENCY_SUCCESS] = "success",
                                                [DEPENDENCY_FAILURE] = "failure",
                                                [DEPENDENCY_END] = "end",
                                                [DEPENDENCY_START] = "start",
                                                [DEPENDENCY_CORRESPONDING] = "corresponding" };

enum dependency_state dependency_state(const struct session_dependency *d)
{
    bool is_met = false;

    switch (d->condition) {
    case DEPENDENCY_SUCCESS:
    case DEPENDENCY_CORRESPONDING:
        if (d->has_failed)
            return DEPENDENCY_UNMET;
        is_met = d->ended && d->result == RESULT_SUCCESS;
        break;
    case DEPENDENCY_FAILURE:
        is_met = d->ended && d->result != RESULT_SUCCESS;
        break;
    case DEPENDENCY_END:
        is_met = d->ended;
        break;
    case DEPENDENCY_START:
        is_met = d->ended || d->has_run;
        break;
    }
    return is_met ? DEPENDENCY_MET : d->ended ? DEPENDENCY_UNMET : DEPENDENCY_WAITING;
}

bool dependency_is_same(const struct session_dependency *a, const struct session_dependency *b)
{
    return uuid_equals(&a->id, &b->id) && a->is_array == b->is_array
           && (!a->is_array || a->element == b->element);
}

void dependency_write_target(const struct session_dependency *d, struct strbuf *out)
{
    char id[UUID_TEXT_MAX];

    strbuf_adds(out, uuid_format(&d->id, id));
    if (d->is_array && d->element == DEPENDENCY_ALL)
        strbuf_adds(out, "[*]");
    else if (d->is_array)
        strbuf_addf(out, "[%" PRId64 "]", d->element);
}

int dependency_parse_target(const char *text, struct session_dependency *ret)
{
    size_t len = strcspn(text, "[");
    char id[UUID_TEXT_MAX], *end;

    if (len >= sizeof(id))
        return -EINVAL;
    memcpy(id, text, len);
    id[len] = '\0';
    ret->is_array = text[len] != '\0';
    if (uuid_parse(id, &ret->id) < 0 || (ret->is_array && len + 2 >= strlen(text)))
        return -EINVAL;
    if (!ret->is_array || strcmp(text + len, "[*]") == 0) {
        ret->element = DEPENDENCY_ALL;
        return 0;
    }
    if (text[len + 1] < '0' || text[len + 1] > '9')
        return -EINVAL;
    ret->element = strtoll(text + len + 1, &end, 10);
    return strcmp(end, "]") == 0 ? 0 : -EINVAL;
}

const char *dependency_condition_name(enum dependency_condition condition)
{
    return dependency_names[condition];
}

int dependency_condition_parse(const char *text, enum dependency_condition *ret)
{
    for (size_t i = 0; text && i < AQ_COUNT(dependency_names); i++)
        if (strcmp(text, dependency_names[i]) == 0) {
            *ret = (enum dependency_condition)i;
            return 0;
        }
    return -EINVAL;
}

int dependency_parse(const char *text, enum dependency_condition *ret, const char **ret_session,
                     struct aq_error *err)
{
    const char *colon = strchr(text, ':');
    char name[16] = "";

    *ret = DEPENDENCY_SUCCESS;
    *ret_session = colon ? colon + 1 : text;
    if (!colon)
        return 0;
    if ((size_t)(colon - text) < sizeof(name))
        memcpy(name, text, (size_t)(colon - text));
    if (dependency_condition_parse(name, ret) < 0)
        return aq_fail_field(err, EINVAL, "dependencies",
                             "'%.60s': the condition before ':' must be success, failure, end, "
                             "start or corresponding",
                             text);
    return 0;
}
