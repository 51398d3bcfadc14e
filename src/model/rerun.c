/* SPDX-License-Identifier: Apache-2.0 */
/* rerun.c - whether a batch session that did not succeed is run again, and when */
#include "model/rerun.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/session.h"

#define EXIT_WORD "exit="
#define EXIT_MAX 255

static const struct {
    const char *name, *text;
} causes[RERUN_CAUSE_COUNT] = {
    [RERUN_OTHER] = { "other", "ended" },
    [RERUN_FAILURE] = { "failure", "its program failed" },
    [RERUN_OOM] = { "oom", "out of memory" },
    [RERUN_GPU_OOM] = { "gpu-oom", "out of GPU memory" },
    [RERUN_NODE_LOST] = { "node-lost", "node lost" },
    [RERUN_TIMEOUT] = { "timeout", "time limit" },
    [RERUN_PREEMPTED] = { "preempted", "preempted" },
    [RERUN_START] = { "start", "not started" },
};

/* Which ends are which. */
static const struct {
    const char *reason;
    enum rerun_cause cause;
} reasons[] = {
    { REASON_OUT_OF_MEMORY, RERUN_OOM },
    { REASON_GPU_OUT_OF_MEMORY, RERUN_GPU_OOM },
    { REASON_AGENT_LOST, RERUN_NODE_LOST },
    { REASON_AGENT_REMOVED, RERUN_NODE_LOST },
    { REASON_AGENT_DRAINED, RERUN_NODE_LOST },
    { REASON_MONITOR_LOST, RERUN_NODE_LOST },
    { REASON_CONTAINER_NOT_FOUND, RERUN_NODE_LOST },
    { REASON_TASK_TIMEOUT, RERUN_TIMEOUT },
    { REASON_PREEMPTED, RERUN_PREEMPTED },
    { REASON_FAILED_TO_CREATE, RERUN_START },
    { REASON_FAILED_TO_START, RERUN_START },
    { REASON_HANG_TIMEOUT, RERUN_START },
    { REASON_BOOTSTRAP_FAILED, RERUN_START },
    { REASON_BOOTSTRAP_TIMEOUT, RERUN_START },
    { REASON_TASK_FAILED, RERUN_FAILURE },
};

const char *rerun_cause_name(enum rerun_cause cause)
{
    return causes[cause].name;
}

const char *rerun_cause_text(enum rerun_cause cause)
{
    return causes[cause].text;
}

enum rerun_cause rerun_cause_of(const char *reason, bool has_exit, int exit_code)
{
    for (size_t i = 0; reason && i < AQ_COUNT(reasons); i++)
        if (strcmp(reason, reasons[i].reason) == 0)
            return reasons[i].cause;
    return has_exit && exit_code != 0 && reason && strcmp(reason, REASON_SELF_TERMINATED) == 0
               ? RERUN_FAILURE
               : RERUN_OTHER;
}

/* ---- what a session says ---- */

/* A number up to 'max' at '*at', which is moved behind it. */
static bool rerun_take_number(const char **at, uint32_t max, uint32_t *ret)
{
    size_t len = strspn(*at, "0123456789");
    unsigned long value = strtoul(*at, NULL, 10);

    if (len == 0 || len > 9 || value > max)
        return false;
    *at += len;
    *ret = (uint32_t)value;
    return true;
}

/* "137" or "1-9" */
static bool rerun_take_exits(const char **at, struct rerun_rule *rule)
{
    uint32_t min, max;

    if (!rerun_take_number(at, EXIT_MAX, &min) || min == 0)
        return false;
    max = min;
    if (**at == '-') {
        (*at)++;
        if (!rerun_take_number(at, EXIT_MAX, &max) || max < min)
            return false;
    }
    rule->exit_min = (int)min;
    rule->exit_max = (int)max;
    return true;
}

static bool rerun_take_cause(const char **at, struct rerun_rule *rule)
{
    size_t len = strcspn(*at, ":,");

    for (int cause = RERUN_OTHER + 1; cause < RERUN_CAUSE_COUNT; cause++)
        if (strlen(causes[cause].name) == len && strncmp(causes[cause].name, *at, len) == 0) {
            rule->cause = (enum rerun_cause)cause;
            *at += len;
            return true;
        }
    return false;
}

static bool rerun_take_rule(const char **at, struct rerun_rule *rule)
{
    bool is_exit = strncmp(*at, EXIT_WORD, strlen(EXIT_WORD)) == 0;

    *rule = (struct rerun_rule){ .cause = RERUN_OTHER };
    if (is_exit)
        *at += strlen(EXIT_WORD);
    if (!(is_exit ? rerun_take_exits(at, rule) : rerun_take_cause(at, rule)))
        return false;
    if (**at == ':') {
        (*at)++;
        if (!rerun_take_number(at, RERUN_RETRIES_MAX, &rule->limit) || rule->limit == 0)
            return false;
    }
    return **at == '\0' || **at == ',';
}

int rerun_policy_parse(const char *text, struct rerun_policy *ret, struct aq_error *err)
{
    const char *at = text ? text : RERUN_ON_DEFAULT;
    struct rerun_policy policy = { .count = 0 };

    for (;; at++) {
        const char *word = at;

        if (policy.count == RERUN_RULES_MAX)
            return aq_fail_field(err, EINVAL, "retry_on", "retry_on has more than %d words",
                                 RERUN_RULES_MAX);
        if (!rerun_take_rule(&at, &policy.rules[policy.count++]))
            return aq_fail_field(err, EINVAL, "retry_on",
                                 "retry_on does not take '%.*s'; it takes failure, "
                                 "exit=CODE[-CODE], oom, gpu-oom, node-lost, timeout, preempted "
                                 "and start, each with :N for at most N (1 to %d) retries",
                                 (int)AQ_MIN(strcspn(word, ","), 40), word, RERUN_RETRIES_MAX);
        if (!*at)
            break;
    }
    *ret = policy;
    return 0;
}

int rerun_check(const struct session_spec *spec, struct aq_error *err)
{
    struct rerun_policy policy;

    if (spec->retry > RERUN_RETRIES_MAX)
        return aq_fail_field(err, EINVAL, "retry", "retry must be from 0 to %d, not %" PRId64,
                             RERUN_RETRIES_MAX, spec->retry);
    if (!spec->retry && (spec->retry_on || spec->retry_delay_usec || spec->retry_factor))
        return aq_fail_field(err, EINVAL, "retry",
                             "retry_on, retry_delay and retry_factor need retry: how many times "
                             "the session is run again");
    if (spec->retry_delay_usec > RERUN_DELAY_MAX_USEC)
        return aq_fail_field(err, EINVAL, "retry_delay", "retry_delay must be a day at most");
    if (spec->retry_factor > RERUN_FACTOR_MAX)
        return aq_fail_field(err, EINVAL, "retry_factor",
                             "retry_factor must be from 1 to %d, not %" PRId64, RERUN_FACTOR_MAX,
                             spec->retry_factor);
    return rerun_policy_parse(spec->retry_on, &policy, err);
}

/* ---- decisions ---- */

/* Does memory that ran out count as a failed program, too? It has its status, 137 mostly. */
static bool rerun_has_failed(const struct rerun_end *end)
{
    return end->cause == RERUN_FAILURE || end->cause == RERUN_OOM || end->cause == RERUN_GPU_OOM;
}

/* The rule of such an end: one that names it, else its exit status, else any failure. */
static const struct rerun_rule *rerun_find_rule(const struct rerun_policy *policy,
                                                const struct rerun_end *end)
{
    const struct rerun_rule *by_exit = NULL, *by_failure = NULL;

    for (size_t i = 0; i < policy->count; i++) {
        const struct rerun_rule *rule = &policy->rules[i];

        if (rule->cause != RERUN_OTHER && rule->cause != RERUN_FAILURE && rule->cause == end->cause)
            return rule;
        if (!rerun_has_failed(end))
            continue;
        if (rule->cause == RERUN_FAILURE && !by_failure)
            by_failure = rule;
        if (rule->cause == RERUN_OTHER && !by_exit && end->has_exit
            && end->exit_code >= rule->exit_min && end->exit_code <= rule->exit_max)
            by_exit = rule;
    }
    return by_exit ? by_exit : by_failure;
}

bool rerun_decide(const struct session_spec *spec, const struct rerun_record *record,
                  const struct rerun_end *end, int64_t now_usec, struct rerun_record *ret)
{
    static const struct rerun_record none;
    const struct rerun_record *before = record ? record : &none;
    struct rerun_policy policy;
    const struct rerun_rule *rule;
    size_t i;

    if (end->cause == RERUN_OTHER || before->retries >= (uint64_t)spec->retry
        || rerun_policy_parse(spec->retry_on, &policy, NULL) < 0)
        return false;
    rule = rerun_find_rule(&policy, end);
    if (!rule)
        return false;
    i = (size_t)(rule - policy.rules);
    if (rule->limit && before->used[i] >= rule->limit)
        return false;
    *ret = *before;
    ret->attempts++;
    ret->retries++;
    ret->used[i]++;
    ret->cause = end->cause;
    ret->next_usec = now_usec;
    if (end->cause != RERUN_PREEMPTED)
        ret->next_usec += rerun_delay_usec(spec, ret->retries);
    return true;
}

int64_t rerun_delay_usec(const struct session_spec *spec, uint32_t retry)
{
    int64_t delay = spec->retry_delay_usec ? spec->retry_delay_usec : RERUN_DELAY_DEFAULT_USEC;
    int64_t factor = spec->retry_factor ? spec->retry_factor : RERUN_FACTOR_DEFAULT;
    int64_t most = AQ_MAX(delay, RERUN_DELAY_LONG_USEC);

    for (uint32_t i = 1; i < retry && factor > 1 && delay < most; i++)
        delay *= factor;
    return AQ_MIN(delay, most);
}

uint32_t rerun_attempts_max(const struct session_spec *spec, const struct rerun_record *record)
{
    return (uint32_t)spec->retry + 1 + (record ? record->attempts - record->retries : 0);
}

/* ---- text ---- */

void rerun_describe(const struct session_spec *spec, const struct rerun_record *record,
                    struct strbuf *text)
{
    char iso[CLOCK_ISO_MAX];

    strbuf_addf(text, "Attempt %" PRIu32 " of %" PRIu32 " failed (%s", record->attempts,
                rerun_attempts_max(spec, record), causes[record->cause].text);
    if (record->agent[0])
        strbuf_addf(text, " on agent '%s'", record->agent);
    strbuf_addf(text, "); the next attempt starts at %s at the earliest.",
                clock_format_utc(record->next_usec, iso));
}

char *rerun_format(const struct rerun_record *record, char buf[RERUN_TEXT_MAX])
{
    size_t rules = RERUN_RULES_MAX, len;

    while (rules > 1 && record->used[rules - 1] == 0)
        rules--;
    len = (size_t)snprintf(buf, RERUN_TEXT_MAX,
                           "%" PRIu32 ":%" PRIu32 ":%" PRId64 ":%s:", record->attempts,
                           record->retries, record->next_usec, causes[record->cause].name);
    for (size_t i = 0; i < rules; i++)
        len += (size_t)snprintf(buf + len, RERUN_TEXT_MAX - len, "%s%" PRIu32, i ? "," : "",
                                record->used[i]);
    (void)snprintf(buf + len, RERUN_TEXT_MAX - len, ":%s", record->agent);
    return buf;
}

static bool rerun_read_used(const char *text, struct rerun_record *ret)
{
    size_t i = 0;

    for (;; text++) {
        if (i == RERUN_RULES_MAX || !rerun_take_number(&text, UINT32_MAX, &ret->used[i++]))
            return false;
        if (!*text)
            return true;
        if (*text != ',')
            return false;
    }
}

int rerun_parse(const char *text, struct rerun_record *ret)
{
    struct rerun_record record = { .attempts = 0 };
    char next[21], cause[16], used[RERUN_TEXT_MAX];
    int at = 0, known = RERUN_OTHER;

    if (strlen(text) >= RERUN_TEXT_MAX
        || sscanf(text, "%" SCNu32 ":%" SCNu32 ":%20[0-9]:%15[a-z-]:%319[0-9,]:%n",
                  &record.attempts, &record.retries, next, cause, used, &at)
               != 5
        || at == 0 || strlen(text + at) >= sizeof(record.agent) || !rerun_read_used(used, &record))
        return -EINVAL;
    while (known < RERUN_CAUSE_COUNT && strcmp(causes[known].name, cause) != 0)
        known++;
    if (known == RERUN_CAUSE_COUNT || record.retries > record.attempts)
        return -EINVAL;
    record.cause = (enum rerun_cause)known;
    record.next_usec = strtoll(next, NULL, 10);
    memcpy(record.agent, text + at, strlen(text + at) + 1);
    *ret = record;
    return 0;
}
