/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of a run. The manager's own events and queries are the only way in; what its users
 * were promised is in play_sessions.h, and what programs do comes from play_runtime.h.
 */
#include "sim/play/play_check.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/core.h"
#include "manager/core/lookup.h"
#include "sim/play/play.h"
#include "sim/play/play_manager.h"
#include "store/query.h"

#define STUCK_USEC \
    (900 * USEC_PER_SEC) /* where all is well, a status with a deadline ends before */
#define AUDIT_USEC (1200 * USEC_PER_SEC)

/* What was announced of a session, or is in the database. */
struct check_seen {
    uint32_t version;
    enum session_status status;
    int64_t since_usec; /* simulated time: of this version */
    bool is_final;
};

/* ---- what the manager announces ---- */

/* An end that is durable. 's' is NULL for a session that no user knows yet. */
static void check_take_end(struct play *play, struct check_seen *seen, struct play_session *s,
                           const struct play_end *end)
{
    seen->is_final = true;
    seen->status = end->status;
    play_ends_take(play, s, end);
    if (!s || s->elements)
        return;
    s->is_final = true;
    list_remove(&s->live_link);
}

static struct check_seen *check_seen_of(struct play_check *c, const struct uuid *id)
{
    struct check_seen *seen = map_get(&c->seen, id, sizeof(*id));

    if (seen)
        return seen;
    seen = aq_alloc(sizeof(*seen));
    seen->since_usec = simuv_now_usec();
    (void)map_set(&c->seen, id, sizeof(*id), seen);
    return seen;
}

/* The session, or the array that it is an element of. */
static struct play_session *check_owner(const struct play *play, const struct session *session)
{
    struct play_session *s = play_sessions_find(
        &play->sessions, uuid_is_nil(&session->array_id) ? &session->id : &session->array_id);

    return s ? s : play_sessions_find_named(&play->sessions, session->name);
}

/* Nothing is placed on a drained agent. */
static void check_places(struct play *play, const struct session *session)
{
    for (size_t i = 0; i < session->kernel_count; i++) {
        const char *agent_id = session->kernels[i].agent_id;

        if (agent_id && play_cluster_find(play, agent_id)->is_drained)
            play_break(play, "durable", "%s is placed on %s, which is drained", session->name,
                       agent_id);
    }
}

/* They ask for the same, at once. */
static bool check_is_alike(const struct play_session *a, const struct play_session *b)
{
    return b->is_acknowledged && a != b && a->access_key == b->access_key && a->type == b->type
           && a->kernels == 1 && b->kernels == 1 && a->cpus == b->cpus && a->shares == b->shares
           && !b->needs && !b->start_usec && !a->elements && !b->elements && !b->is_end_asked
           && a->is_preemptible == b->is_preemptible && a->may_preempt == b->may_preempt;
}

/* Nobody who asks for the same overtakes: sessions of a user and a priority start in the order in
 * which they were made. Those that were tried before, or wait for something else, may come later.
 */
static void check_order(struct play *play, const struct core *core, const struct play_session *s,
                        const struct session *session)
{
    LIST_FOREACH(link, &play->sessions.live) {
        const struct play_session *other = LIST_ENTRY(link, struct play_session, live_link);
        const struct session *waiting = NULL;

        if (!check_is_alike(s, other) || !(waiting = core_find_session(core, &other->id)))
            continue;
        if (waiting->status == SESSION_PENDING && waiting->version == 1
            && waiting->row < session->row && waiting->priority >= session->priority)
            play_break(play, "progress", "%s is placed before %s, which was made before it",
                       session->name, waiting->name);
    }
}

/* Agents refuse what was placed on them only where they were away or were told late. */
static void check_refusal(struct play *play, const struct play_session *s,
                          const struct core_event *event)
{
    if (strcmp(event->reason, REASON_FAILED_TO_CREATE) == 0 && !s->program.fails
        && play_cluster_is_calm(play, STUCK_USEC))
        play_break(play, "ledger", "%s could not be created on %s", s->name,
                   event->kernel->agent_id);
}

static void check_on_event(void *data, const struct core_event *event)
{
    struct play *play = data;
    const struct session *session = event->session;
    struct check_seen *seen = check_seen_of(&play->check, &session->id);
    struct play_session *s = check_owner(play, session);
    struct play_end end;

    play_trace(play, "manager: %s %s%s%s", session->name, event->name, event->reason[0] ? ", " : "",
               event->reason);
    if (seen->is_final && session->version != seen->version)
        play_break(play, "durable", "%s of %s, which had ended as %s", event->name, session->name,
                   session_status_name(seen->status));
    else if (session->version < seen->version)
        play_break(play, "durable", "%s goes back to version %u of %u", session->name,
                   (unsigned)session->version, (unsigned)seen->version);
    if (s && event->kernel && event->kernel->agent_id)
        check_refusal(play, s, event);
    if (event->kernel && event->kernel->agent_id)
        play_faults_on_kernel(play, event->kernel->agent_id);
    if (session->status == SESSION_SCHEDULED && !event->kernel)
        check_places(play, session);
    if (s && session->status == SESSION_SCHEDULED && !event->kernel)
        check_order(play, play_cluster_core(play), s, session);
    if (session->version != seen->version)
        seen->since_usec = simuv_now_usec();
    seen->version = session->version;
    seen->status = session->status;
    play_workload_on_event(play, s, event->name);
    if (s && !s->has_id && !s->elements)
        play_sessions_identify(&play->sessions, s, &session->id);
    if (!session_is_terminal(session->status) || seen->is_final)
        return;
    end = (struct play_end){ .status = session->status,
                             .result = session->result,
                             .reason = session->reason,
                             .has_exit = session->kernels[0].has_exit,
                             .exit_code = session->kernels[0].exit_code };
    for (size_t i = 0; i < session->kernel_count && i < PLAY_KERNELS_MAX; i++)
        end.kernels[end.kernel_count++] = session->kernels[i].id;
    check_take_end(play, seen, s, &end);
}

void play_check_begin(struct play *play)
{
    play_programs_begin(play);
    play->check.audit_usec = simuv_now_usec() + AUDIT_USEC;
}

/* Another process of the manager: nothing of the last one comes any more. */
static void check_follow(struct play *play, struct core *core)
{
    struct play_check *c = &play->check;

    c->boots = play_manager_boots(play->cluster.manager);
    c->is_reading = c->is_auditing = false;
    simuv_enter(play->cluster.manager_host);
    (void)core_subscribe(core, NULL, check_on_event, play);
    simuv_leave();
}

void play_check_turn(struct play *play)
{
    struct core *core;

    play->report.turns++;
    if (play->check.boots == play_manager_boots(play->cluster.manager))
        return;
    core = play_cluster_core(play);
    if (core)
        check_follow(play, core);
}

/* ---- sessions that are not in memory: they must have ended ---- */

struct check_read {
    struct play *play;
    uint32_t boots;
    struct uuid ids[STORE_IDS_MAX];
    size_t count;
    struct store_page *page; /* of a thread of the store, until it has answered */
};

static int check_read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct check_read *read = data;
    struct store_query query = { .ids = read->ids, .id_count = read->count, .with_kernels = true };

    return store_list_sessions(tx, &query, &read->page, err);
}

static void check_ended_row(struct play *play, const struct session_row *row)
{
    const struct session *session = &row->session;
    struct play_session *s = play_sessions_find(&play->sessions, &session->id);
    struct check_seen *seen = check_seen_of(&play->check, &session->id);
    struct play_end end = { .status = session->status,
                            .result = session->result,
                            .reason = session->reason };

    if (!s || s->is_final)
        return;
    if (!session_is_terminal(session->status)) {
        play_break(play, "durable", "%s is %s in the database and not in memory", s->name,
                   session_status_name(session->status));
        return;
    }
    end.has_exit = row->kernels[0].kernel.has_exit;
    end.exit_code = row->kernels[0].kernel.exit_code;
    for (size_t i = 0; i < row->kernel_count && i < PLAY_KERNELS_MAX; i++)
        end.kernels[end.kernel_count++] = row->kernels[i].kernel.id;
    check_take_end(play, seen, s, &end);
}

static void check_on_read(void *data, int r, const struct aq_error *err)
{
    struct check_read *read = data;
    struct play *play = read->play;

    (void)err;
    play->check.is_reading = false;
    for (size_t i = 0; r == 0 && i < read->page->count; i++)
        check_ended_row(play, &read->page->sessions[i]);
    for (size_t i = 0; r == 0 && i < read->count; i++) {
        const struct play_session *s = play_sessions_find(&play->sessions, &read->ids[i]);

        if (!s->is_final)
            play_break(play, "durable",
                       "%s was acknowledged, and is neither in memory nor in the database",
                       s->name);
    }
    if (r == 0)
        store_page_free(read->page);
    free(read);
}

static void check_begin_read(struct play *play, struct core *core, struct check_read *read)
{
    play->check.is_reading = true;
    simuv_enter(play->cluster.manager_host);
    store_read(core_store(core), check_read_ended, check_on_read, read);
    simuv_leave();
}

/* ---- sessions in memory ---- */

/* Memory says what was acknowledged, and goes on. */
static void check_live(struct play *play, const struct play_session *s, const struct session *m)
{
    const struct check_seen *seen = check_seen_of(&play->check, &m->id);
    bool may_last = m->status == SESSION_PENDING || m->status == SESSION_RUNNING
                    || m->status == SESSION_RUNNING_DEGRADED;

    if (strcmp(m->name, s->name) != 0 && !(s->asked_name && strcmp(m->name, s->asked_name) == 0))
        play_break(play, "durable", "%s is called %s", s->name, m->name);
    else if (m->version < seen->version || seen->is_final)
        play_break(play, "durable", "%s is %s (version %u), and was %s (%u)", s->name,
                   session_status_name(m->status), (unsigned)m->version,
                   session_status_name(seen->status), (unsigned)seen->version);
    else if (s->is_end_acknowledged && m->status != SESSION_TERMINATING)
        play_break(play, "durable", "%s is %s, and its end was acknowledged", s->name,
                   session_status_name(m->status));
    else if (!may_last && simuv_now_usec() - seen->since_usec > STUCK_USEC
             && play_cluster_is_calm(play, STUCK_USEC))
        play_break(play, "progress", "%s is %s for more than %d s", s->name,
                   session_status_name(m->status), (int)(STUCK_USEC / USEC_PER_SEC));
}

static void check_array(struct play *play, struct core *core, struct play_session *s)
{
    struct core_array array;

    if (!core_get_array(core, &s->id, &array)) {
        s->is_final = true;
        list_remove(&s->live_link);
    } else if (array.running > s->elements / 2) {
        play_break(play, "ledger", "%" PRId64 " elements of %s run, and %d may", array.running,
                   s->name, s->elements / 2);
    }
}

static void check_sessions(struct play *play, struct core *core)
{
    struct check_read *read = aq_alloc(sizeof(*read));

    read->play = play;
    LIST_FOREACH(link, &play->sessions.live) {
        struct play_session *s = LIST_ENTRY(link, struct play_session, live_link);
        const struct session *m;

        if (!s->is_acknowledged)
            continue;
        if (s->elements)
            check_array(play, core, s);
        else if ((m = core_find_session(core, &s->id)))
            check_live(play, s, m);
        else if (read->count < STORE_IDS_MAX)
            read->ids[read->count++] = s->id;
    }
    if (read->count && !play->check.is_reading)
        check_begin_read(play, core, read);
    else
        free(read);
}

/* ---- programs and kernels ---- */

/* They contradict each other for too long, while all is well. */
static bool check_doubt(const struct play *play, struct play_ran *p)
{
    if (!p->doubtful_usec)
        p->doubtful_usec = simuv_now_usec();
    return simuv_now_usec() - p->doubtful_usec > STUCK_USEC
           && play_cluster_is_calm(play, STUCK_USEC);
}

static void check_running(struct play *play, struct core *core)
{
    LIST_FOREACH(link, &play->programs.running) {
        struct play_ran *p = LIST_ENTRY(link, struct play_ran, running_link);
        const struct kernel *k = core_find_kernel(core, &p->kernel_id);
        char id[UUID_TEXT_MAX];

        if (k && kernel_is_holding(k->status) && k->agent_id
            && strcmp(k->agent_id, p->agent_id) == 0)
            p->doubtful_usec = 0;
        else if (check_doubt(play, p))
            play_break(play, "leak", "the program of kernel %s runs on %s, and the manager %s",
                       uuid_format(&p->kernel_id, id), p->agent_id,
                       k ? "has the kernel elsewhere" : "does not have the kernel");
    }
}

/* The first session that waits while nothing runs, and neither for its time nor for a drained
 * agent; NULL = none.
 */
static const struct session *check_find_waiting(const struct play *play, const struct core *core)
{
    struct core_counts counts = core_get_counts(core);
    const struct session *session = NULL;

    for (int i = 0; i < play->cluster.node_count; i++)
        if (play->cluster.nodes[i].is_drained)
            return NULL;
    if (counts.running || counts.starting || counts.terminating)
        return NULL;
    while ((session = core_next_session(core, session))) {
        const struct play_session *s = play_sessions_find(&play->sessions, &session->id);

        if (s && !s->start_usec)
            return session;
    }
    return NULL;
}

static void check_queue(struct play *play, struct core *core)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct session *first = check_find_waiting(play, core);
    struct aq_error err = { 0 };

    if (!first || !play_cluster_is_calm(play, STUCK_USEC)) {
        play->check.idle_usec = 0;
        return;
    }
    if (!play->check.idle_usec)
        play->check.idle_usec = simuv_now_usec();
    if (simuv_now_usec() - play->check.idle_usec < STUCK_USEC)
        return;
    (void)core_explain(core, &first->id, &text, NULL, &err);
    play_break(play, "progress", "%s waits while nothing runs: %s", first->name, text.data);
}

static void check_kernels(struct play *play, struct core *core)
{
    const struct session *session = NULL;
    char id[UUID_TEXT_MAX];

    while ((session = core_next_session(core, session)))
        for (size_t i = 0; i < session->kernel_count; i++) {
            const struct kernel *k = &session->kernels[i];
            struct play_ran *p;

            if (k->status != KERNEL_RUNNING)
                continue;
            p = play_programs_of(play, &k->id);
            if (!p->running && check_doubt(play, p))
                play_break(play, "leak", "kernel %s of %s is RUNNING on %s, and its program is not",
                           uuid_format(&k->id, id), session->name, k->agent_id);
        }
}

/* ---- the manager's audits ---- */

static void check_on_audit(void *data, int r, const struct aq_error *err, const char *findings)
{
    struct play *play = data;

    (void)err;
    play->check.is_auditing = false;
    if (r == 0)
        play->report.audits++;
    if (r > 0)
        play_break(play, "ledger", "%d findings: %.*s", r, (int)strcspn(findings, "\n"), findings);
}

static void check_audit(struct play *play, struct core *core)
{
    if (play->check.is_auditing)
        return;
    play->check.is_auditing = true;
    simuv_enter(play->cluster.manager_host);
    core_audit(core, check_on_audit, play);
    simuv_leave();
}

void play_check_sweep(struct play *play)
{
    struct core *core = play_cluster_core(play);

    if (!core || play->check.boots != play_manager_boots(play->cluster.manager))
        return;
    play->report.sweeps++;
    check_sessions(play, core);
    check_running(play, core);
    check_kernels(play, core);
    check_queue(play, core);
    if (simuv_now_usec() >= play->check.audit_usec) {
        play->check.audit_usec = simuv_now_usec() + AUDIT_USEC;
        check_audit(play, core);
    }
}

/* ---- the end ---- */

static void check_end_node(struct play *play, struct core *core, const struct play_node *node)
{
    AQ_CLEANUP(slots_donep) struct slots held = { 0 };
    AQ_CLEANUP(aq_freep) char *path = aq_format(
        "%s/%s/state/kernels", play_manager_scratch(play->cluster.manager), node->id);
    DIR *dir = opendir(path);
    int count = 0;

    if (!core_agent_is_connected(core, node->id))
        play_break(play, "progress", "%s has not come back", node->id);
    if (core_get_occupied(core, node->id, &held) < 0)
        play_break(play, "ledger", "what %s holds cannot be summed", node->id);
    for (size_t i = 0; i < held.count; i++)
        if (held.items[i].amount)
            play_break(play, "leak", "%s of %s is held, and nothing runs", held.items[i].name,
                       node->id);
    while (dir && readdir(dir))
        count++;
    if (dir)
        (void)closedir(dir);
    if (count > 2)
        play_break(play, "leak", "%s has the directories of %d kernels, and nothing runs", node->id,
                   count - 2);
}

void play_check_end(struct play *play)
{
    struct core *core = play_cluster_core(play);

    if (!core) {
        play_break(play, "progress", "the manager has not come back");
        return;
    }
    if (core_count_sessions(core))
        play_break(play, "leak", "%zu sessions live that no user knows of",
                   core_count_sessions(core));
    if (!list_is_empty(&play->programs.running))
        play_break(play, "leak", "a program runs, and no session lives");
    for (int i = 0; i < play->cluster.node_count; i++)
        check_end_node(play, core, &play->cluster.nodes[i]);
    check_audit(play, core);
}
