/* SPDX-License-Identifier: Apache-2.0 */
/* retry_options.c - how often and for how long a resource group lets a start be tried
 *
 * The member "handler_options" of scheduler_opts: "STEP.max_retry_count" and
 * "STEP.timeout" (seconds), 0 = none.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "manager/core/lookup.h"
#include "manager/core/scheduling/retry_options.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

#define FIELD "handler_options"
#define COUNT_MAX 1000000
#define TIMEOUT_MAX (1 << 30)

void retry_options_defaults(struct core_scheduling *ret)
{
    ret->retry[RETRY_PRECONDITION].max_retry_count = 5;
    ret->retry[RETRY_START].max_retry_count = 5;
}

static int retry_options_read_one(const char *key, const json_t *value, struct core_scheduling *ret,
                                  struct aq_error *err)
{
    const char *dot = strchr(key, '.');
    bool is_timeout = dot && strcmp(dot, ".timeout") == 0;
    int64_t max = is_timeout ? TIMEOUT_MAX : COUNT_MAX;
    char name[RETRY_TEXT_MAX];
    enum retry_step step;

    (void)snprintf(name, sizeof(name), "%.*s", dot ? (int)AQ_MIN(dot - key, RETRY_TEXT_MAX - 1) : 0,
                   key);
    if ((!is_timeout && (!dot || strcmp(dot, ".max_retry_count") != 0))
        || retry_step_parse(name, &step) < 0)
        return aq_fail_field(err, EINVAL, FIELD,
                             FIELD
                             " has no '%.60s': schedule-sessions, "
                             "check-precondition and start-sessions have .max_retry_count and "
                             ".timeout",
                             key);
    if (!json_is_number(value) || json_number_value(value) < 0
        || json_number_value(value) > (double)max || (!is_timeout && !json_is_integer(value)))
        return aq_fail_field(err, EINVAL, FIELD, FIELD ".%.60s must be a %s from 0 (none) to %lld",
                             key, is_timeout ? "number of seconds" : "number", (long long)max);
    if (is_timeout)
        ret->retry[step].timeout_usec = (int64_t)(json_number_value(value) * USEC_PER_SEC);
    else
        ret->retry[step].max_retry_count = (uint32_t)json_integer_value(value);
    return 0;
}

int retry_options_read(struct json_t *from, struct core_scheduling *ret, struct aq_error *err)
{
    const char *key;
    json_t *value;
    int r = 0;

    if (from && !json_is_object(from))
        return aq_fail_field(err, EINVAL, FIELD, "must be an object");
    json_object_foreach(from, key, value)
        if (r == 0)
            r = retry_options_read_one(key, value, ret, err);
    return r;
}

void core_write_handler_options(const struct core_scheduling *s, struct jsonw *w)
{
    jsonw_object_begin(w);
    for (int step = RETRY_NONE + 1; step < RETRY_STEP_COUNT; step++) {
        char key[RETRY_TEXT_MAX + 20];

        (void)snprintf(key, sizeof(key), "%s.max_retry_count", retry_step_name(step));
        jsonw_member_int(w, key, s->retry[step].max_retry_count);
        (void)snprintf(key, sizeof(key), "%s.timeout", retry_step_name(step));
        jsonw_member_int(w, key, s->retry[step].timeout_usec / USEC_PER_SEC);
    }
    jsonw_object_end(w);
}

bool retry_options_count_waits(const struct session_entry *l)
{
    return l->resource_group->options.retries_to_skip
           || (l->resource_group->scheduling.retry[RETRY_SCHEDULE].max_retry_count
               && l->s.priority > 0);
}
