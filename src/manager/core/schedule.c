/* schedule.c - snapshots for the scheduler, and what follows from its outcomes
 *
 * At most one pass per resource group is under way: its placements are taken
 * into account by nothing but memory, which has them once they are durable.
 * A pass is shown a window of the queue, not all of it.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "manager/core/parts.h"

#define WINDOW_MIN 16
#define WINDOW_MAX 512

static const char *const slot_priority[] = { "cuda", "rocm", "tpu", "cpu", "mem" };

struct snapshot {
    struct sched_snapshot snap;
    struct sched_agent *agents;
    struct sched_session *sessions;
    struct sched_account *accounts;
    struct live **lives;       /* per session */
    struct account **owners;   /* per account */
    size_t account_cap;
    bool has_more;             /* sessions beyond the window */
};

/* ---- the snapshot ---- */

static int add_agents(struct core *core, const struct rgroup *g, struct snapshot *s)
{
    s->agents = arena_array(&core->scratch, core->agent_count, sizeof(*s->agents));
    if (!s->agents)
        return -ENOMEM;
    for (size_t i = 0; i < core->agent_count; i++) {
        struct agent_live *a = core->agents_sorted[i];
        const struct sched_device *devices;
        const struct slots *free;
        size_t device_count;

        if (!agent_is_ready(a) || !a->a.resource_group ||
            strcmp(a->a.resource_group, g->g.name) != 0)
            continue;
        if (agent_free_slots(a, &free) < 0 ||
            agent_find_cards(core, a, &devices, &device_count) < 0)
            return -ENOMEM;
        s->agents[s->snap.agent_count++] = (struct sched_agent){
            .id = a->a.id,
            .architecture = a->a.architecture,
            .free = free,
            .kernels = a->kernel_count,
            .devices = devices,
            .device_count = device_count,
        };
    }
    s->snap.agents = s->agents;
    return 0;
}

/* The index of an account in the snapshot, where it is added if it limits anything. */
static int add_account(struct core *core, struct snapshot *s, struct account *account,
                       uint32_t *ret)
{
    struct sched_account *sa = &s->accounts[s->snap.account_count];

    if (account->index < s->snap.account_count && s->owners[account->index] == account) {
        *ret = account->index;
        return 0;
    }
    *ret = SCHED_NO_ACCOUNT;
    if (!account_limits(core, account, sa))
        return 0;
    if (account_usage(account, &sa->used) < 0)
        return -ENOMEM;
    sa->sessions = (int64_t)account->member_count;
    s->owners[s->snap.account_count] = account;
    *ret = account->index = (uint32_t)s->snap.account_count++;
    return 0;
}

static int add_session(struct core *core, struct snapshot *s, struct live *l)
{
    size_t i = s->snap.session_count;
    const struct slots **kernels = arena_array(&core->scratch, l->s.kernel_count,
                                               sizeof(*kernels));

    if (!kernels)
        return -ENOMEM;
    for (size_t k = 0; k < l->s.kernel_count; k++)
        kernels[k] = &l->s.kernels[k].requested;
    s->lives[i] = l;
    s->sessions[i] = (struct sched_session){
        .id = l->s.id,
        .row = l->s.row,
        .type = l->s.type,
        .priority = l->s.priority,
        .starts_usec = l->s.starts_usec,
        .architecture = l->architecture,
        .single_node = l->is_single_node,
        .kernels = kernels,
        .kernel_count = l->s.kernel_count,
        .dependencies = l->s.dependencies,
        .dependency_count = l->s.dependency_count,
        .failed_agent = l->failed_agent,
    };
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        if (add_account(core, s, l->accounts[kind], &s->sessions[i].accounts[kind]) < 0)
            return -ENOMEM;
    s->snap.session_count++;
    return 0;
}

static int snapshot_begin(struct core *core, const struct rgroup *g, size_t window,
                          struct snapshot *s)
{
    struct arena *arena = &core->scratch;
    const struct sequencer_ops *sequencer = g->g.scheduler ? sched_find_sequencer(g->g.scheduler)
                                                           : NULL;
    const struct selector_ops *selector = g->g.selection ? sched_find_selector(g->g.selection)
                                                         : NULL;

    *s = (struct snapshot){ .snap = {
        .now_usec = clock_realtime_usec(),
        .types = core->types,
        .options = {
            .sequencer = sequencer ? sequencer : &sched_fifo,
            .selector = { .ops = selector ? selector : &sched_concentrated },
            .slot_priority = slot_priority,
            .slot_priority_count = AQ_COUNT(slot_priority),
        },
    } };
    s->sessions = arena_array(arena, window, sizeof(*s->sessions));
    s->lives = arena_array(arena, window, sizeof(struct live *));
    s->accounts = arena_array(arena, window * SCHED_ACCOUNT_KINDS + 1, sizeof(*s->accounts));
    s->owners = arena_array(arena, window * SCHED_ACCOUNT_KINDS + 1, sizeof(struct account *));
    if (!s->sessions || !s->lives || !s->accounts || !s->owners)
        return -ENOMEM;
    s->snap.sessions = s->sessions;
    s->snap.accounts = s->accounts;
    return add_agents(core, g, s);
}

static int add_queue(struct core *core, struct rgroup *g, size_t window, struct snapshot *s)
{
    for (size_t p = PRIORITY_COUNT; p-- > 0;)
        LIST_FOREACH(link, &g->bands[p]) {
            struct live *l = LIST_ENTRY(link, struct live, queue_link);

            l->was_skipped = l->is_busy;
            if (l->is_busy || l->end_reason)
                continue;
            if (s->snap.session_count == window) {
                s->has_more = true;
                return 0;
            }
            if (add_session(core, s, l) < 0)
                return -ENOMEM;
        }
    return 0;
}

/* ---- outcomes ---- */

static void place(struct core *core, const struct snapshot *s, struct live *l,
                  const struct sched_outcome *out)
{
    struct event *e;

    for (size_t k = 0; k < l->s.kernel_count; k++) {
        if (!(e = propose_kernel(core, l, k, KERNEL_SCHEDULED, NULL)))
            return;
        e->kernel_status.agent_id = strdup(s->agents[out->agents[k]].id);
        if (!e->kernel_status.agent_id)
            core_die("an agent's id");
    }
    if (!(e = propose(core, l, EVENT_SESSION_STATUS)))
        return;
    e->session_status = (struct event_session_status){ .id = l->s.id,
        .from = l->s.status, .to = SESSION_SCHEDULED, .version = l->s.version,
        .reason = l->s.reason ? "scheduled" : NULL };
    if (l->s.status_data && !(e->session_status.status_data = strdup("{}")))
        core_die("a status");
    core->counts.scheduled++;
}

static void handle(struct core *core, struct rgroup *g, const struct snapshot *s,
                   const struct sched_outcome *out)
{
    struct live *l = s->lives[out->session];
    int64_t now = clock_monotonic_usec();

    if (l->verdict != out->verdict)
        l->verdict_usec = now;
    switch (out->verdict) {
    case SCHED_PLACED:
        place(core, s, l, out);
        return;
    case SCHED_DOOMED:
        l->end_reason = REASON_DEPENDENCY_FAILED;
        break;
    case SCHED_NO_ROOM:
        g->blocker = l;
        l->verdict = out->verdict;
        break;
    default:
        queue_park(core, l, out->verdict,
                   out->account == SCHED_NO_ACCOUNT ? NULL : s->owners[out->account]);
        break;
    }
    live_touch(core, l);
}

/* The window follows what the last pass looked at. */
static void adjust_window(struct rgroup *g, const struct snapshot *s,
                          const struct sched_result *result)
{
    if (!result->is_blocked && s->has_more)
        g->window = AQ_MIN(g->window * 2, WINDOW_MAX);
    else if (result->count < g->window / 4)
        g->window = AQ_MAX(g->window / 2, WINDOW_MIN);
}

static int pass(struct core *core, struct rgroup *g)
{
    struct snapshot s;
    struct sched_result result;

    if (snapshot_begin(core, g, g->window, &s) < 0 || add_queue(core, g, g->window, &s) < 0 ||
        sched_run(&s.snap, &core->scratch, &result, NULL) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < result.count; i++)
        handle(core, g, &s, &result.outcomes[i]);
    adjust_window(g, &s, &result);
    if (s.has_more && !result.is_blocked) {
        g->needs_pass = true;
        core_schedule_turn(core);
    }
    AQ_FAULT("core.schedule.decided");
    return 0;
}

void schedule(struct core *core)
{
    for (size_t i = 0; i < core->rgroups.count; i++) {
        struct rgroup *g = core->rgroups.entries[i].value;

        if (!g->needs_pass || g->is_passing || g->pending == 0)
            continue;
        g->needs_pass = false;
        g->blocker = NULL;
        if (pass(core, g) < 0) {
            g->needs_pass = true; /* the next tick tries again */
            log_error("out of memory in a scheduling pass");
        }
        arena_clear(&core->scratch, 1 << 16);
        propose_pass(core, g);
        propose_flush(core);
    }
}

/* ---- explanations ---- */

static int explain_behind(const struct live *l, struct strbuf *text, struct strbuf *json)
{
    const struct live *b = l->rgroup->blocker;
    AQ_CLEANUP(strbuf_donep) struct strbuf sentence = STRBUF_INIT;
    char id[UUID_TEXT_MAX];

    if (b) {
        strbuf_addf(&sentence, "It waits its turn: session '%s' (%s) is before it and waits for "
                    "room.", b->s.name, uuid_format(&b->s.id, id));
    } else {
        strbuf_adds(&sentence, "It waits its turn.");
    }
    if (text)
        strbuf_add(text, sentence.data, sentence.len);
    if (json) {
        struct jsonw w = jsonw_make(json);

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "kind", sched_verdict_name(SCHED_BEHIND));
        jsonw_member_str(&w, "text", sentence.data);
        if (b)
            jsonw_member_str(&w, "blocker", id);
        jsonw_object_end(&w);
    }
    return strbuf_ok(&sentence) ? 0 : -ENOMEM;
}

int core_explain(struct core *core, const struct uuid *session_id, struct strbuf *text,
                 struct strbuf *json, struct aq_error *err)
{
    struct live *l = live_find(core, session_id);
    struct snapshot s;
    AQ_CLEANUP(strbuf_donep) struct strbuf t = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf j = STRBUF_INIT;
    int r;

    if (!l || l->s.status != SESSION_PENDING)
        return aq_fail(err, ENOENT, "no such session waits in a queue");
    r = snapshot_begin(core, l->rgroup, 1, &s);
    if (r == 0)
        r = add_session(core, &s, l);
    if (r == 0)
        r = sched_explain(&s.snap, 0, &core->scratch, &t, &j, err);
    arena_clear(&core->scratch, 1 << 16);
    if (r == SCHED_PLACED && l->rgroup->blocker && l->rgroup->blocker != l)
        r = explain_behind(l, text, json);
    else if (r >= 0) {
        if (text)
            strbuf_add(text, t.data, t.len);
        if (json)
            strbuf_add(json, j.data, j.len);
        r = 0;
    }
    if (r == 0)
        r = refusal_keep(l->s.status_data, text, json);
    return r < 0 ? aq_fail(err, ENOMEM, "explaining a session") : 0;
}
