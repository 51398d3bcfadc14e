/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that wait for a status or an end of others. */
#include "model/dependency.h"

#include <errno.h>
#include <string.h>

static const char *const dependency_names[] = { [DEPENDENCY_SUCCESS] = "success",
                                                [DEPENDENCY_FAILURE] = "failure",
                                                [DEPENDENCY_END] = "end",
                                                [DEPENDENCY_START] = "start" };

enum dependency_state dependency_state(const struct session_dependency *d)
{
    bool is_met = false;

    switch (d->condition) {
    case DEPENDENCY_SUCCESS:
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
                             "'%.60s': the condition before ':' must be success, failure, end or "
                             "start",
                             text);
    return 0;
}
