/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a step on the way to a session's start that failed. */
#include "model/retry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define BACKOFF_MAX_USEC (60 * USEC_PER_SEC)

static const char *const steps[RETRY_STEP_COUNT] = {
    [RETRY_SCHEDULE] = "schedule-sessions",
    [RETRY_PRECONDITION] = "check-precondition",
    [RETRY_START] = "start-sessions",
};

static const char *const results[] = {
    [RETRY_NEED_RETRY] = "need-retry",
    [RETRY_EXPIRED] = "expired",
    [RETRY_GIVE_UP] = "give-up",
};

static const enum session_status follows[RETRY_STEP_COUNT][AQ_COUNT(results)] = {
    [RETRY_SCHEDULE] = { SESSION_PENDING, SESSION_CANCELLED, SESSION_DEPRIORITIZING },
    [RETRY_PRECONDITION] = { SESSION_RESCHEDULING, SESSION_RESCHEDULING, SESSION_TERMINATING },
    [RETRY_START] = { SESSION_RESCHEDULING, SESSION_RESCHEDULING, SESSION_TERMINATING },
};

const char *retry_step_name(enum retry_step step)
{
    return steps[step];
}

int retry_step_parse(const char *text, enum retry_step *ret)
{
    for (int i = RETRY_NONE + 1; i < RETRY_STEP_COUNT; i++)
        if (strcmp(text, steps[i]) == 0) {
            *ret = (enum retry_step)i;
            return 0;
        }
    return -EINVAL;
}

const char *retry_result_name(enum retry_result result)
{
    return results[result];
}

enum retry_result retry_classify(const struct retry_limits *limits, enum retry_step step,
                                 const struct retry_record *last, int64_t since_usec,
                                 int64_t now_usec)
{
    uint32_t attempts = last->step == step ? last->attempts : 0;

    if (limits->max_retry_count && attempts >= limits->max_retry_count && !last->is_skip)
        return RETRY_GIVE_UP;
    if (limits->timeout_usec && now_usec - since_usec > limits->timeout_usec)
        return RETRY_EXPIRED;
    return RETRY_NEED_RETRY;
}

struct retry_record retry_count(const struct retry_record *last, enum retry_step step, bool is_skip)
{
    bool is_more = last->step == step && last->is_skip == is_skip;

    return (struct retry_record){ step, is_more ? last->attempts + 1 : 1, is_skip };
}

enum session_status retry_status(enum retry_step step, enum retry_result result)
{
    return follows[step][result];
}

int64_t retry_backoff_usec(uint32_t attempts)
{
    if (attempts < 2)
        return 0;
    return attempts > 8 ? BACKOFF_MAX_USEC
                        : AQ_MIN(USEC_PER_SEC << (attempts - 2), BACKOFF_MAX_USEC);
}

char *retry_format(const struct retry_record *record, char buf[RETRY_TEXT_MAX])
{
    buf[0] = '\0';
    if (record->step != RETRY_NONE)
        (void)snprintf(buf, RETRY_TEXT_MAX, "%s:%" PRIu32, steps[record->step], record->attempts);
    return buf;
}

int retry_parse(const char *text, struct retry_record *ret)
{
    struct retry_record record = { .step = RETRY_NONE };
    char step[RETRY_TEXT_MAX], count[10];
    int used = 0;

    if (text[0]
        && (sscanf(text, "%39[a-z-]:%9[0-9]%n", step, count, &used) != 2 || text[used]
            || retry_step_parse(step, &record.step) < 0))
        return -EINVAL;
    if (text[0])
        record.attempts = (uint32_t)strtoul(count, NULL, 10);
    *ret = record;
    return 0;
}
