/* SPDX-License-Identifier: Apache-2.0 */
/* rerun.h - whether a batch session that did not succeed is run again, and when
 *
 * A session says how often (session_spec.retry), after which ends (retry_on) and with which delay.
 * What has been used of that is a struct rerun_record, which the store keeps with the session: a
 * manager that restarts neither grants another attempt nor shortens a delay. model/retry.h is about
 * starts that fail before the session counts an attempt. Pure.
 */
#ifndef AQ_MODEL_RERUN_H
#define AQ_MODEL_RERUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "model/agent.h"

struct session_spec;

#define RERUN_RETRIES_MAX 100
#define RERUN_RULES_MAX 16
#define RERUN_FACTOR_MAX 10
#define RERUN_FACTOR_DEFAULT 2
#define RERUN_DELAY_DEFAULT_USEC (INT64_C(10) * 1000000)
#define RERUN_DELAY_LONG_USEC (INT64_C(600) * 1000000)  /* delays do not grow beyond this */
#define RERUN_DELAY_MAX_USEC (INT64_C(86400) * 1000000) /* of the first delay */
#define RERUN_ON_DEFAULT "failure,oom,node-lost,start"
#define RERUN_ON_MAX 512 /* bytes of retry_on */

/* How an attempt ended. */
enum rerun_cause {
    RERUN_OTHER, /* success, or an end that somebody wanted: never run again */
    RERUN_FAILURE,
    RERUN_OOM,
    RERUN_GPU_OOM,
    RERUN_NODE_LOST,
    RERUN_TIMEOUT,
    RERUN_PREEMPTED,
    RERUN_START, /* its program did not start */
    RERUN_CAUSE_COUNT
};

struct rerun_end {
    enum rerun_cause cause;
    bool has_exit;
    int exit_code;
};

/* "oom:2", or "exit=1-9:2", which has the cause RERUN_OTHER. */
struct rerun_rule {
    enum rerun_cause cause;
    int exit_min, exit_max;
    uint32_t limit; /* 0 = that of the session */
};

struct rerun_policy {
    struct rerun_rule rules[RERUN_RULES_MAX];
    size_t count;
};

/* What has been used, and how the last attempt ended. Zeroed: the first attempt has not ended. */
struct rerun_record {
    uint32_t attempts;              /* that have ended */
    uint32_t retries;               /* of these, those that count against the session's limit */
    uint32_t used[RERUN_RULES_MAX]; /* of these, by rule */
    int64_t next_usec;              /* wall clock: the next attempt starts then or later */
    enum rerun_cause cause;
    char agent[AGENT_ID_MAX + 1]; /* of the kernel whose end it was; "" = none */
};

/* "oom", "node-lost" ...; "other". */
const char *rerun_cause_name(enum rerun_cause cause);

/* In a sentence: "out of memory". */
const char *rerun_cause_text(enum rerun_cause cause);

/* By the session's reason (REASON_*; NULL = none) and, for RERUN_FAILURE, the exit status. */
enum rerun_cause rerun_cause_of(const char *reason, bool has_exit, int exit_code);

/* 'text' as --retry-on takes it, NULL = RERUN_ON_DEFAULT. -EINVAL (field "retry_on") with the word
 * that is not understood.
 */
int rerun_policy_parse(const char *text, struct rerun_policy *ret,
                       struct aq_error *err) AQ_UNTRUSTED;

/* The bounds of a session's members about retries. -EINVAL with the field as the API calls it. */
int rerun_check(const struct session_spec *spec, struct aq_error *err);

/* Would a session like this run again after such an end, and has a retry left? 'ret' is its record
 * then, but for the agent; 'now_usec' is the wall clock's.
 */
bool rerun_decide(const struct session_spec *spec, const struct rerun_record *record,
                  const struct rerun_end *end, int64_t now_usec, struct rerun_record *ret);

/* How long to wait before the n-th retry, 1-based. */
int64_t rerun_delay_usec(const struct session_spec *spec, uint32_t retry);

/* How many attempts there are if all that remain are needed. */
uint32_t rerun_attempts_max(const struct session_spec *spec, const struct rerun_record *record);

/* "Attempt 2 of 4 failed (out of memory on agent 'a1'); the next attempt starts at ... at the
 * earliest."
 */
void rerun_describe(const struct session_spec *spec, const struct rerun_record *record,
                    struct strbuf *text);

/* "ATTEMPTS:RETRIES:NEXT:CAUSE:USED,USED...:AGENT" */
#define RERUN_TEXT_MAX 320
char *rerun_format(const struct rerun_record *record, char buf[RERUN_TEXT_MAX]);

/* 0 or -EINVAL. */
int rerun_parse(const char *text, struct rerun_record *ret);

#endif
