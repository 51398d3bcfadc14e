/* SPDX-License-Identifier: Apache-2.0 */
/* probes.c - see probes.h */
#include "agent/probe/probes.h"

#include <string.h>

#include "agent/probe/turns.h"
#include "base/clock.h"
#include "base/memory.h"
#include "http/defer.h"

#define TEXT_USEC USEC_PER_SEC /* between findings that differ in their text alone */

struct probes {
    uv_loop_t *loop;
    struct turn_queue turns;
    size_t starting; /* of all */
};

struct probe {
    struct turn turn;
    struct probes *of;
    struct probe_spec spec;
    char *path; /* of 'spec' */
    struct probe_state state;
    struct defer *timer;           /* until it is due; NULL then */
    struct probe_attempt *attempt; /* NULL = not under way */
    char *text;                    /* what the last one found; NULL = an answer as expected */
    int64_t at_usec;
    char *told_text;
    int64_t told_usec; /* monotonic; 0 = nothing was */
    const struct probe_ops *ops;
    void *data;
};

struct probes *probes_new(uv_loop_t *loop)
{
    struct probes *probes = aq_alloc(sizeof(*probes));

    probes->loop = loop;
    turns_init(&probes->turns, PROBES_AT_ONCE);
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
    turn_wait(&p->turn);
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

static void probe_on_attempted(void *data, enum probe_outcome outcome, const char *text)
{
    struct probe *p = data;

    p->attempt = NULL;
    turn_over(&p->turn);
    probe_take(p, outcome, text);
}

static void probe_begin(struct turn *turn)
{
    struct probe *p = AQ_CONTAINER_OF(turn, struct probe, turn);
    AQ_CLEANUP(aq_closep) int ns = -1;
    struct aq_error err = { 0 };
    int r = p->ops->open_network(p->data, &ns, &err);

    if (r == 0)
        r = probe_attempt_start(p->of->loop, ns, &p->spec.target, probe_on_attempted, p,
                                &p->attempt, &err);
    if (r < 0) {
        turn_over(turn);
        probe_take(p, PROBE_UNKNOWN, err.text);
    }
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
    turn_init(&p->turn, &probes->turns, probe_begin);
    probes->starting += !ready_usec;
    p->timer = defer_call(probes->loop, 0, probe_on_due, p);
    return p;
}

void probe_free(struct probe *p)
{
    if (!p)
        return;
    defer_cancel(p->timer);
    probe_attempt_cancel(p->attempt);
    p->of->starting -= p->state.health == PROBE_STARTING;
    turn_over(&p->turn); /* another one has its place */
    free(p->path);
    free(p->text);
    free(p->told_text);
    free(p);
}
