/* retry.c - starts that failed or take too long: once more, or the end
 *
 * model/retry.h has the rules. The limits of a resource group are the member
 * "handler_options" of scheduler_opts: "STEP.max_retry_count" and
 * "STEP.timeout" (seconds), 0 = none. What has failed counts until the session
 * runs and is kept with it; how long it waits before the next try is not: a
 * manager that starts anew tries at once.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "manager/core/parts.h"

#define FIELD "handler_options"
#define COUNT_MAX 1000000
#define TIMEOUT_MAX (1 << 30)
#define LOWER_BY 10
#define LATE_USEC (60 * USEC_PER_SEC) /* a limit comes before what ends all */

/* ---- settings ---- */

void retry_defaults(struct core_scheduling *ret)
{
    ret->retry[RETRY_PRECONDITION].max_retry_count = 5;
    ret->retry[RETRY_START].max_retry_count = 5;
}

static int read_setting(const char *key, const json_t *value, struct core_scheduling *ret,
                        struct aq_error *err)
{
    const char *dot = strchr(key, '.');
    bool is_timeout = dot && strcmp(dot, ".timeout") == 0;
    int64_t max = is_timeout ? TIMEOUT_MAX : COUNT_MAX;
    char name[RETRY_TEXT_MAX];
    enum retry_step step;

    (void)snprintf(name, sizeof(name), "%.*s", dot ? (int)AQ_MIN(dot - key, RETRY_TEXT_MAX) : 0, key);
    if ((!is_timeout && (!dot || strcmp(dot, ".max_retry_count") != 0)) ||
        retry_step_parse(name, &step) < 0)
        return aq_fail_field(err, EINVAL, FIELD, FIELD " has no '%.60s': schedule-sessions, "
                             "check-precondition and start-sessions have .max_retry_count and "
                             ".timeout", key);
    if (!json_is_number(value) || json_number_value(value) < 0 ||
        json_number_value(value) > (double)max || (!is_timeout && !json_is_integer(value)))
        return aq_fail_field(err, EINVAL, FIELD, FIELD ".%.60s must be a %s from 0 (none) to %lld",
                             key, is_timeout ? "number of seconds" : "number", (long long)max);
    if (is_timeout)
        ret->retry[step].timeout_usec = (int64_t)(json_number_value(value) * USEC_PER_SEC);
    else
        ret->retry[step].max_retry_count = (uint32_t)json_integer_value(value);
    return 0;
}

int retry_read(struct json_t *from, struct core_scheduling *ret, struct aq_error *err)
{
    const char *key;
    json_t *value;
    int r = 0;

    if (from && !json_is_object(from))
        return aq_fail_field(err, EINVAL, FIELD, "must be an object");
    json_object_foreach(from, key, value)
        if (r == 0)
            r = read_setting(key, value, ret, err);
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

/* ---- a start that failed ---- */

struct failure {
    enum retry_step step;
    size_t rank;
    const char *reason, *data; /* of the session; data: JSON {"error": ...} or NULL */
};

static void conclude(struct core *core, struct live *l, const struct failure *f,
                     enum retry_result result)
{
    struct retry_record next = retry_count(&l->s.retry, f->step, false);
    struct event *e;

    attempts_failed(core, l, &next, result, f->data);
    if (retry_status(f->step, result) == SESSION_TERMINATING) {
        end_begin(core, l, f->reason, end_result(l), f->data);
    } else {
        free(l->failed_agent);
        l->failed_agent = strdup(l->s.kernels[f->rank].agent_id); /* NULL only forgets it */
        l->backoff_usec = clock_monotonic_usec() + retry_backoff_usec(next.attempts);
        e = end_propose(core, l, retry_status(f->step, result), f->reason, RESULT_UNDEFINED,
                        f->data);
        if (e) {
            e->session_status.has_retry = true;
            e->session_status.retry = next;
        }
    }
    AQ_FAULT("core.start.failed");
}

void retry_failed(struct core *core, struct live *l, size_t rank)
{
    const struct kernel_live *k = &l->kernels[rank];
    struct failure f = { k->error_is_image ? RETRY_PRECONDITION : RETRY_START, rank,
        REASON_FAILED_TO_CREATE, k->error };
    bool may_retry = k->error_is_passing && end_may_reschedule(l);

    conclude(core, l, &f, may_retry ? retry_classify(&l->rgroup->scheduling.retry[f.step], f.step,
                                                     &l->s.retry, 0, 0)
                                    : RETRY_GIVE_UP);
}

/* ---- a start that takes too long ---- */

static void write_expired(const struct live *l, const struct failure *f, int64_t timeout_usec,
                          struct strbuf *json)
{
    struct jsonw w = jsonw_make(json);
    char text[80];

    (void)snprintf(text, sizeof(text), "%s %.3g s",
                   f->step == RETRY_PRECONDITION ? "its image was not there after"
                                                 : "it did not run after",
                   (double)timeout_usec / USEC_PER_SEC);
    jsonw_object_begin(&w);
    jsonw_key(&w, "error");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "src", "manager");
    jsonw_member_str(&w, "agent_id", l->s.kernels[f->rank].agent_id);
    jsonw_member_str(&w, "name", retry_result_name(RETRY_EXPIRED));
    jsonw_member_str(&w, "field", f->step == RETRY_PRECONDITION ? "check-precondition.timeout"
                                                                : "start-sessions.timeout");
    jsonw_member_str(&w, "repr", text);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
}

/* The first that does not run yet; kernel_count = all do. */
static size_t find_late(const struct live *l)
{
    size_t rank = 0;

    while (rank < l->s.kernel_count &&
           (l->kernels[rank].fact == FACT_RUNNING || l->kernels[rank].fact == FACT_ENDED))
        rank++;
    return rank;
}

static bool is_starting(enum session_status s)
{
    return s == SESSION_SCHEDULED || s == SESSION_PREPARING || s == SESSION_PULLING ||
           s == SESSION_PREPARED || s == SESSION_CREATING;
}

int64_t retry_deadline(const struct live *l, int64_t deadline_usec)
{
    int64_t pull = l->rgroup->scheduling.retry[RETRY_PRECONDITION].timeout_usec;
    int64_t start = l->rgroup->scheduling.retry[RETRY_START].timeout_usec;

    if (deadline_usec == 0 || !is_starting(l->s.status) ||
        (pull <= deadline_usec && start <= deadline_usec))
        return deadline_usec;
    return pull + AQ_MAX(start, deadline_usec) + LATE_USEC;
}

bool retry_expired(struct core *core, struct live *l, int64_t now)
{
    struct failure f = { RETRY_START, find_late(l), REASON_HANG_TIMEOUT, NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf json = STRBUF_INIT;
    const struct retry_limits *limits;
    int64_t due;

    if (f.rank == l->s.kernel_count)
        return false;
    if (l->kernels[f.rank].is_pulling)
        f.step = RETRY_PRECONDITION;
    limits = &l->rgroup->scheduling.retry[f.step];
    if (!limits->timeout_usec)
        return false;
    due = age_due(core, l, limits->timeout_usec);
    if (f.step == RETRY_START) /* what went on before this manager's life is not known */
        due = AQ_MAX(due, AQ_MAX(l->kernels[f.rank].pulled_usec, core->started_usec) +
                              limits->timeout_usec);
    if (now < due || !end_agents_are_connected(core, l)) {
        live_wake_at(core, l, now < due ? due : now + limits->timeout_usec);
        return false;
    }
    write_expired(l, &f, limits->timeout_usec, &json);
    f.data = json.data;
    conclude(core, l, &f, end_may_reschedule(l)
                              ? retry_classify(limits, f.step, &l->s.retry, 0,
                                               limits->timeout_usec + 1)
                              : RETRY_GIVE_UP);
    AQ_FAULT("core.start.expired");
    return true;
}

void retry_take_pull(struct core *core, struct live *l, const struct uuid *kernel_id, bool is_over)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        struct kernel_live *k = &l->kernels[i];

        if (!uuid_equals(&l->s.kernels[i].id, kernel_id) || k->is_pulling == !is_over)
            continue;
        k->is_pulling = !is_over;
        k->pulled_usec = is_over ? clock_monotonic_usec() : 0;
        live_touch(core, l);
    }
}

/* ---- PENDING ---- */

/* Passes that found no room for it, one after another. */
static struct retry_record waits_of(const struct live *l)
{
    return (struct retry_record){ RETRY_SCHEDULE, live_tries(l) - l->tries_base, false };
}

bool retry_deprioritize(struct core *core, struct live *l)
{
    const struct retry_limits *limits = &l->rgroup->scheduling.retry[RETRY_SCHEDULE];
    struct retry_record waits = waits_of(l), before = waits;

    if (l->rgroup->blocker != l || l->verdict != SCHED_NO_ROOM || l->s.priority == 0 ||
        waits.attempts == 0)
        return false;
    before.attempts--; /* the last one is what is judged */
    if (retry_classify(limits, RETRY_SCHEDULE, &before, 0, 0) != RETRY_GIVE_UP)
        return false;
    attempts_failed(core, l, &waits, RETRY_GIVE_UP, NULL);
    propose_session(core, l, retry_status(RETRY_SCHEDULE, RETRY_GIVE_UP), REASON_DEPRIORITIZED);
    AQ_FAULT("core.deprioritize.proposed");
    return true;
}

void retry_note_timeout(struct core *core, struct live *l)
{
    struct retry_record waits = waits_of(l);

    attempts_failed(core, l, &waits, RETRY_EXPIRED, NULL);
}

void retry_lower(struct core *core, struct live *l)
{
    struct event *e = propose(core, l, EVENT_SESSION_PRIORITY);

    if (!e)
        return;
    e->session_change.id = l->s.id;
    e->session_change.priority = AQ_MAX(l->s.priority - LOWER_BY, 0);
    propose_session(core, l, SESSION_PENDING, NULL);
    AQ_FAULT("core.deprioritize.lowered");
}

bool retry_counts_waits(const struct live *l)
{
    return l->rgroup->options.retries_to_skip ||
           (l->rgroup->scheduling.retry[RETRY_SCHEDULE].max_retry_count && l->s.priority > 0);
}
