/* SPDX-License-Identifier: Apache-2.0 */
/* probes.c - see probes.h */
#include "agent/probe/probes.h"

#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "http/defer.h"

#define SLOW_AT_ONCE (PROBES_AT_ONCE / 2)
#define SLOW_USEC USEC_PER_SEC
#define TEXT_USEC USEC_PER_SEC /* between findings that differ in their text alone */

struct probes {
    uv_loop_t *loop;
    struct list due, slow_due; /* struct probe, by when they were due */
    size_t count, slow_count;  /* under way; those of slow_due among them */
    size_t starting;           /* of all */
};

struct probe {
    struct list link; /* while it is due */
    struct probes *of;
    struct probe_spec spec;
    char *path; /* of 'spec' */
    struct probe_state state;
    struct defer *timer;           /* until it is due; NULL then */
    struct probe_attempt *attempt; /* NULL = not under way */
    int64_t attempt_usec;          /* monotonic: when it began */
    bool is_slow;
    char *text; /* what the last one found; NULL = an answer as expected */
    int64_t at_usec;
    char *told_text;
    int64_t told_usec; /* monotonic; 0 = nothing was */
    const struct probe_ops *ops;
    void *data;
};

static void probes_run(struct probes *probes);

struct probes *probes_new(uv_loop_t *loop)
{
    struct probes *probes = aq_alloc(sizeof(*probes));

    probes->loop = loop;
    list_init(&probes->due);
    list_init(&probes->slow_due);
    return probes;
}

void probes_free(struct probes *probes)
{
    free(probes);
}

/* ---- a finding ---- */

struct probe_finding probe_get_finding(const struct probe *p)
{
    return (struct probe_finding){ p->state.health, p->text, p->at_usec };
}

static bool probe_is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void probe_tell(struct probe *p, bool has_changed, int64_t now_usec)
{
    const struct probe_finding finding = probe_get_finding(p);

    if (!has_changed && p->told_usec
        && (probe_is_same_text(p->text, p->told_text) || now_usec - p->told_usec < TEXT_USEC))
        return;
    free(p->told_text);
    p->told_text = p->text ? aq_strdup(p->text) : NULL;
    p->told_usec = now_usec;
    p->ops->on_finding(p->data, &finding);
}

/* ---- under way ---- */

static void probe_on_due(void *data)
{
    struct probe *p = data;

    p->timer = NULL;
    list_add(p->is_slow ? &p->of->slow_due : &p->of->due, &p->link);
    probes_run(p->of);
}

static void probe_take(struct probe *p, enum probe_outcome outcome, const char *text)
{
    enum probe_health former = p->state.health;
    int64_t now_usec = clock_monotonic_usec(), delay_usec;
    bool has_changed;

    delay_usec = probe_state_take(&p->state, &p->spec.rule, outcome, now_usec, p->of->starting);
    has_changed = p->state.health != former;
    if (has_changed)
        p->at_usec = clock_realtime_usec();
    if (has_changed && former == PROBE_STARTING)
        p->of->starting--;
    free(p->text);
    p->text = text ? aq_strdup(text) : NULL;
    p->timer = defer_call(p->of->loop, (unsigned)(delay_usec / USEC_PER_MSEC), probe_on_due, p);
    probe_tell(p, has_changed, now_usec);
}

static void probe_leave(struct probe *p)
{
    p->of->count--;
    p->of->slow_count -= p->is_slow;
}

static void probe_on_attempted(void *data, enum probe_outcome outcome, const char *text)
{
    struct probe *p = data;
    struct probes *probes = p->of;

    p->attempt = NULL;
    probe_leave(p);
    p->is_slow = clock_monotonic_usec() - p->attempt_usec > SLOW_USEC;
    probe_take(p, outcome, text);
    probes_run(probes);
}

static void probe_begin(struct probe *p)
{
    AQ_CLEANUP(aq_closep) int ns = -1;
    struct aq_error err = { 0 };
    int r = p->ops->open_network(p->data, &ns, &err);

    if (r == 0)
        r = probe_attempt_start(p->of->loop, ns, &p->spec.target, probe_on_attempted, p,
                                &p->attempt, &err);
    if (r < 0) {
        probe_take(p, PROBE_UNKNOWN, err.text);
        return;
    }
    p->attempt_usec = clock_monotonic_usec();
    p->of->count++;
    p->of->slow_count += p->is_slow;
}

static void probes_run(struct probes *probes)
{
    struct list *link;

    while (probes->count < PROBES_AT_ONCE
           && ((link = list_take(&probes->due))
               || (probes->slow_count < SLOW_AT_ONCE && (link = list_take(&probes->slow_due)))))
        probe_begin(LIST_ENTRY(link, struct probe, link));
}

/* ---- begin and end ---- */

struct probe *probe_new(struct probes *probes, const struct probe_spec *spec, int64_t ready_usec,
                        const struct probe_ops *ops, void *data)
{
    struct probe *p = aq_alloc(sizeof(*p));

    *p = (struct probe){ .of = probes,
                         .spec = *spec,
                         .path = spec->target.path ? aq_strdup(spec->target.path) : NULL,
                         .state = { .health = ready_usec ? PROBE_READY : PROBE_STARTING,
                                    .begun_usec = clock_monotonic_usec() },
                         .at_usec = ready_usec ? ready_usec : clock_realtime_usec(),
                         .ops = ops,
                         .data = data };
    p->spec.target.path = p->path;
    list_init(&p->link);
    probes->starting += !ready_usec;
    p->timer = defer_call(probes->loop, 0, probe_on_due, p);
    return p;
}

void probe_free(struct probe *p)
{
    struct probes *probes = p ? p->of : NULL;
    bool was_under_way = p && p->attempt;

    if (!p)
        return;
    list_remove(&p->link);
    defer_cancel(p->timer);
    if (was_under_way)
        probe_leave(p);
    probe_attempt_cancel(p->attempt);
    probes->starting -= p->state.health == PROBE_STARTING;
    free(p->path);
    free(p->text);
    free(p->told_text);
    free(p);
    if (was_under_way)
        probes_run(probes); /* another one has its place */
}
