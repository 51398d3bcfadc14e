/* SPDX-License-Identifier: Apache-2.0 */
/* retry.h - what becomes of a step on the way to a session's start that failed
 *
 * The steps, their names and their limits are Backend.AI's. A failure is one
 * of three: the step is tried again, it took too long, or it has been tried
 * often enough. How often is kept with the session, so that a restart of the
 * manager does not begin to start counting from zero. Pure.
 */
#ifndef AQ_MODEL_RETRY_H
#define AQ_MODEL_RETRY_H

#include <stdbool.h>

#include "model/status.h"

enum retry_step {
    RETRY_NONE,
    RETRY_SCHEDULE,     /* "schedule-sessions": an agent where it fits is looked for */
    RETRY_PRECONDITION, /* "check-precondition": its agents fetch the image */
    RETRY_START,        /* "start-sessions": they put the containers together */
    RETRY_STEP_COUNT
};

enum retry_result {
    RETRY_NEED_RETRY, /* "need-retry" */
    RETRY_EXPIRED,    /* "expired" */
    RETRY_GIVE_UP     /* "give-up" */
};

struct retry_limits {
    int64_t timeout_usec;     /* 0 = none */
    uint32_t max_retry_count; /* 0 = forever */
};

/* The last run of failures. */
struct retry_record {
    enum retry_step step; /* RETRY_NONE = there was none */
    uint32_t attempts;    /* that failed, one after another */
    bool is_skip;         /* it was not tried at all */
};

/* NULL for RETRY_NONE. */
const char *retry_step_name(enum retry_step step);
int retry_step_parse(const char *text, enum retry_step *ret);
const char *retry_result_name(enum retry_result result);

/* 'step' has failed now, after 'last' and having begun at 'since_usec' (of any clock). */
enum retry_result retry_classify(const struct retry_limits *limits, enum retry_step step,
                                 const struct retry_record *last, int64_t since_usec,
                                 int64_t now_usec);
/* What is to be kept then: of another step, the count starts from zero. */
struct retry_record retry_count(const struct retry_record *last, enum retry_step step,
                                bool is_skip);
/* The status of the session then. RESCHEDULING leads back to PENDING. */
enum session_status retry_status(enum retry_step step, enum retry_result result);
/* How long to wait before the next try, after that many failed: nothing the
 * first time, which may succeed elsewhere, then 1, 2, 4 ... 60 seconds.
 */
int64_t retry_backoff_usec(uint32_t attempts);

/* "start-sessions:3", "" for none; 'is_skip' is not kept. */
#define RETRY_TEXT_MAX 40
char *retry_format(const struct retry_record *record, char buf[RETRY_TEXT_MAX]);
/* 0 or -EINVAL. */
int retry_parse(const char *text, struct retry_record *ret);

#endif
