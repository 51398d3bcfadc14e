/* SPDX-License-Identifier: Apache-2.0 */
/* orphan_adoption.c - a session again, from what its kernels were made from
 *
 * What the database does not know is asked for as its owner once did, and
 * checked the same way; then its kernels are said to be where they are. The
 * next report of each agent is of a kernel that is known, and the session goes
 * on from there as after a start of the manager.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/nodes/orphans_internal.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/request.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* What a kernel was made from; message_done() when done with it. */
static int adoption_read_order(const struct orphan *o, struct message *ret, struct aq_error *err)
{
    struct message msg;
    int r;

    if (!o->order)
        return aq_fail(err, EINVAL,
                       o->is_unreadable
                           ? "agent '%s' cannot say any more what it was made from: it can only "
                             "be ended"
                           : "agent '%s' has not said yet what it was made from: try again soon",
                       o->agent->id);
    r = message_decode(o->order, strlen(o->order), &msg, err);
    if (r < 0)
        return r;
    if (msg.type == MSG_KERNEL_CREATE && uuid_equals(&msg.kernel_create.kernel_id, &o->kernel_id)
        && uuid_equals(&msg.kernel_create.session_id, &o->session_id)) {
        *ret = msg;
        return 0;
    }
    message_done(&msg);
    return aq_fail(err, EINVAL, "what agent '%s' says that it was made from is of another kernel",
                   o->agent->id);
}

/* ---- the list ---- */

void orphan_adoption_describe(struct core *core, struct orphan *const *kernels, size_t count,
                              core_orphan_fn each, void *data)
{
    const struct session_entry *l = session_entry_find(core, &kernels[0]->session_id);
    AQ_CLEANUP(strbuf_donep) struct strbuf agents = STRBUF_INIT;
    struct core_orphan told = { .session_id = kernels[0]->session_id,
                                .state = msg_kernel_state_name(kernels[0]->state),
                                .status = l ? session_status_name(l->s.status) : NULL,
                                .found = count };
    struct message order = { .type = MSG_UNKNOWN };

    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(kernels[i]->agent->id, kernels[i - 1]->agent->id) != 0)
            strbuf_addf(&agents, "%s%s", i ? "," : "", kernels[i]->agent->id);
        told.is_ending |= kernels[i]->is_ending;
        told.is_unreadable |= kernels[i]->is_unreadable;
        told.is_of_lost_commit |= kernels[i]->is_of_lost_commit;
        if (order.type == MSG_UNKNOWN && adoption_read_order(kernels[i], &order, NULL) < 0)
            order.type = MSG_UNKNOWN;
    }
    told.agents = agents.data;
    if (order.type != MSG_UNKNOWN) {
        const struct kernel_spec *spec = &order.kernel_create.spec;

        told.name = spec->session_name;
        told.access_key = spec->access_key;
        told.type = spec->session_type;
        told.image = spec->session.image;
        told.expected = (size_t)spec->cluster_size;
    }
    each(data, &told);
    if (order.type != MSG_UNKNOWN)
        message_done(&order);
}

/* ---- adopting ---- */

struct adoption {
    struct core *core;
    struct uuid session_id;
    struct orphan **kernels; /* borrowed; by rank once their orders are read */
    size_t count;
    struct event_batch *batch;
    core_done_fn done;
    void *data;
};

static void adoption_free(struct adoption *a)
{
    free(a->kernels);
    event_batch_free(a->batch);
    free(a);
}

static int adoption_find_kernels(struct adoption *a, struct aq_error *err)
{
    const struct map *all = &a->core->orphans.by_kernel;

    a->kernels = aq_alloc_array(all->count + 1, sizeof(struct orphan *));
    for (size_t i = 0; i < all->count; i++) {
        struct orphan *o = all->entries[i].value;

        if (uuid_equals(&o->session_id, &a->session_id) && !o->is_ending)
            a->kernels[a->count++] = o;
    }
    return a->count ? 0
                    : aq_fail_kind(err, ENOENT, "session-not-found",
                                   "No session of that id is newer than the database.");
}

static void adoption_add_kernel(struct adoption *a, const struct kernel *k, const struct orphan *o,
                                enum kernel_status to)
{
    struct event *e = event_batch_add(a->batch, EVENT_KERNEL_STATUS, clock_realtime_usec());

    e->kernel_status = (struct event_kernel_status){
        .id = k->id,
        .session_id = a->session_id,
        .from = k->status,
        .to = to,
        .version = k->version,
        .attempt = (uint32_t)o->attempt,
        .agent_id = aq_strdup(o->agent->id),
    };
}

static void adoption_add_session(struct adoption *a, const struct session *s,
                                 enum session_status to, const char *reason)
{
    struct event *e = event_batch_add(a->batch, EVENT_SESSION_STATUS, clock_realtime_usec());

    e->session_status = (struct event_session_status){
        .id = a->session_id, .from = s->status, .to = to, .version = s->version, .reason = reason
    };
}

static const struct orphan *adoption_find_kernel(const struct adoption *a, const struct uuid *id)
{
    for (size_t i = 0; i < a->count; i++)
        if (uuid_equals(&a->kernels[i]->kernel_id, id))
            return a->kernels[i];
    return NULL;
}

/* ---- one that the database knows ---- */

/* It waits here, and was started after the backup. */
static int adoption_place_pending(struct adoption *a, const struct session *s, struct aq_error *err)
{
    for (size_t i = 0; i < s->kernel_count; i++) {
        const struct orphan *o = adoption_find_kernel(a, &s->kernels[i].id);

        if (!o)
            return aq_fail(err, EINVAL,
                           "%zu of its %zu containers have been found: wait for the other agents, "
                           "or end it",
                           a->count, s->kernel_count);
        adoption_add_kernel(a, &s->kernels[i], o, KERNEL_SCHEDULED);
    }
    adoption_add_session(a, s, SESSION_SCHEDULED, "scheduled");
    return 0;
}

/* It ran at the time of the backup, and was restarted since. */
static int adoption_follow_restart(struct adoption *a, const struct session *s,
                                   struct aq_error *err)
{
    for (size_t i = 0; i < s->kernel_count; i++) {
        const struct kernel *k = &s->kernels[i];
        const struct orphan *o = adoption_find_kernel(a, &k->id);

        if (!o)
            continue;
        if (k->status != KERNEL_RUNNING || !k->agent_id || strcmp(k->agent_id, o->agent->id) != 0)
            return aq_fail(err, EINVAL,
                           "the database has it on agent '%s', where it may run, too: end one of "
                           "them",
                           k->agent_id ? k->agent_id : "");
        adoption_add_kernel(a, k, o, KERNEL_RESTARTING);
    }
    adoption_add_session(a, s, SESSION_RESTARTING, REASON_RESTARTING);
    return 0;
}

static int adoption_fill_known(struct adoption *a, const struct session_entry *l,
                               struct aq_error *err)
{
    if (l->durable.is_busy)
        return aq_fail(err, EAGAIN, "the session '%s' is being changed: try again", l->s.name);
    if (l->s.status == SESSION_PENDING)
        return adoption_place_pending(a, &l->s, err);
    if (l->s.status == SESSION_RUNNING)
        return adoption_follow_restart(a, &l->s, err);
    return aq_fail(err, EINVAL, "the session '%s' is %s here: it can only be ended", l->s.name,
                   session_status_name(l->s.status));
}

/* ---- one that it does not know ---- */

static void adoption_done_orders(struct message *orders, size_t count)
{
    for (size_t i = 0; i < count; i++)
        message_done(&orders[i]);
    free(orders);
}

/* All that the session had, by rank, as their kernels are then, too. */
static int adoption_read_orders(struct adoption *a, struct message **ret, struct aq_error *err)
{
    struct message *orders = aq_alloc_array(a->count, sizeof(*orders));
    struct orphan **sorted = aq_alloc_array(a->count, sizeof(struct orphan *));
    size_t count = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < a->count; i++) {
        const struct kernel_spec *spec = &orders[i].kernel_create.spec;

        if ((r = adoption_read_order(a->kernels[i], &orders[i], err)) < 0)
            break;
        count++;
        if (spec->cluster_size != (int64_t)a->count)
            r = aq_fail(err, EINVAL,
                        "%zu of its %lld containers have been found: wait for the other agents, "
                        "or end it",
                        a->count, (long long)spec->cluster_size);
        else if (spec->rank >= (int64_t)a->count || sorted[spec->rank])
            r = aq_fail(err, EINVAL, "two of its containers say that they are the same one");
        else
            sorted[spec->rank] = a->kernels[i];
    }
    if (r < 0) {
        adoption_done_orders(orders, count);
        free(sorted);
        return r;
    }
    free(a->kernels);
    a->kernels = sorted;
    *ret = orders;
    return 0;
}

static const struct kernel_spec *adoption_spec_of(const struct message *orders, size_t count,
                                                  const struct orphan *o)
{
    for (size_t i = 0; i < count; i++)
        if (uuid_equals(&orders[i].kernel_create.kernel_id, &o->kernel_id))
            return &orders[i].kernel_create.spec;
    return NULL;
}

static bool adoption_is_multi_node(const struct adoption *a)
{
    for (size_t i = 1; i < a->count; i++)
        if (strcmp(a->kernels[i]->agent->id, a->kernels[0]->agent->id) != 0)
            return true;
    return false;
}

/* As its owner once asked for it. */
static int adoption_build_session(struct adoption *a, const struct kernel_spec *spec,
                                  struct session *ret, struct aq_error *err)
{
    struct uuid project_id;
    const struct project *project = spec->group_id && uuid_parse(spec->group_id, &project_id) == 0
                                        ? core_find_project(a->core, &project_id)
                                        : NULL;
    struct session_request req = { .name = spec->session_name,
                                   .spec = spec->session,
                                   .access_key = spec->access_key,
                                   .group = project ? project->name : NULL,
                                   .domain = project ? project->domain : NULL,
                                   .cluster_size = (uint32_t)a->count,
                                   .multi_node = adoption_is_multi_node(a),
                                   .priority = -1 };
    int r;

    if (!spec->session_type || session_type_parse(spec->session_type, &req.type) < 0)
        return aq_fail(err, EINVAL, "it has no type of a session");
    r = slots_from_text(spec->slots, strlen(spec->slots), a->core->types, &req.resources, err);
    if (r == 0)
        r = request_build(a->core, &req, ret, err);
    slots_done(&req.resources);
    return r;
}

static int adoption_set_kernels(struct adoption *a, const struct message *orders, struct session *s,
                                struct aq_error *err)
{
    for (size_t i = 0; i < s->kernel_count; i++) {
        const struct kernel_spec *spec = adoption_spec_of(orders, a->count, a->kernels[i]);
        int r = slots_from_text(spec->slots, strlen(spec->slots), a->core->types,
                                &s->kernels[i].requested, err);

        if (r < 0)
            return r;
        s->kernels[i].id = a->kernels[i]->kernel_id;
    }
    return 0;
}

/* Where its main kernel runs. */
static int adoption_set_resource_group(struct adoption *a, struct session *s, struct aq_error *err)
{
    const struct agent_entry *agent = agent_entry_find(a->core, a->kernels[0]->agent->id);

    if (!agent || !agent->a.resource_group)
        return aq_fail(err, EINVAL, "agent '%s' is in no resource group", a->kernels[0]->agent->id);
    s->resource_group = aq_strdup(agent->a.resource_group);
    return 0;
}

static int adoption_check_name(const struct adoption *a, const struct session *s,
                               struct aq_error *err)
{
    const struct session *other = core_find_session_named(a->core, &s->user_id, s->name);

    return other ? aq_fail_kind(err, EEXIST, "session-already-exists",
                                "a live session of its owner is called '%s', too: rename or end "
                                "that one",
                                s->name)
                 : 0;
}

/* Made, and at once where its kernels are. */
static void adoption_add_events(struct adoption *a, struct session *s)
{
    event_batch_add(a->batch, EVENT_SESSION_CREATED, s->created_usec);
    for (size_t i = 0; i < s->kernel_count; i++)
        adoption_add_kernel(a, &s->kernels[i], a->kernels[i], KERNEL_SCHEDULED);
    adoption_add_session(a, s, SESSION_SCHEDULED, NULL);
    a->batch->events[0].session = *s;
    *s = (struct session){ .name = "" };
}

static int adoption_fill_unknown(struct adoption *a, struct aq_error *err)
{
    struct session s = { .name = "" };
    struct message *orders;
    int r = adoption_read_orders(a, &orders, err);

    if (r < 0)
        return r;
    r = adoption_build_session(a, adoption_spec_of(orders, a->count, a->kernels[0]), &s, err);
    if (r == 0) {
        s.id = a->session_id;
        r = adoption_set_kernels(a, orders, &s, err);
    }
    if (r == 0 && (r = adoption_set_resource_group(a, &s, err)) == 0
        && (r = adoption_check_name(a, &s, err)) == 0)
        adoption_add_events(a, &s);
    adoption_done_orders(orders, a->count);
    session_done(&s);
    return r;
}

/* ---- together ---- */

static void adoption_on_committed(void *data, int r, const struct aq_error *err)
{
    struct adoption *a = data;
    struct session_entry *l = r == 0 ? session_entry_find(a->core, &a->session_id) : NULL;
    struct aq_error ended;

    if (r == -EEXIST) { /* its name is nobody's: looked at before */
        r = aq_fail(&ended, EINVAL,
                    "the database knows it as a session that has ended: it can only be ended");
        err = &ended;
    }
    if (r == 0)
        orphans_drop_session(a->core, &a->session_id);
    if (l) {
        sched_sync_invalidate(l->resource_group); /* it did not place this one */
        log_info("session '%s' is adopted", l->s.name);
    }
    a->done(a->data, r, err);
    adoption_free(a);
}

void core_adopt_orphan(struct core *core, const struct uuid *session_id, const struct audit_who *by,
                       core_done_fn done, void *data)
{
    struct adoption *a = aq_alloc(sizeof(*a));
    const struct session_entry *l = session_entry_find(core, session_id);
    struct aq_error err = { 0 };
    int r;

    a->batch = event_batch_new();
    a->core = core;
    a->session_id = *session_id;
    a->done = done;
    a->data = data;
    if ((r = adoption_find_kernels(a, &err)) == 0)
        r = l ? adoption_fill_known(a, l, &err) : adoption_fill_unknown(a, &err);
    if (r == 0) {
        const struct session s = l ? l->s : a->batch->events[0].session; /* the events may move */

        session_audit_created(core, a->batch, &s, "adopt-session", by);
    }
    if (r < 0) {
        adoption_free(a);
        core_defer(core, done, data, r, &err);
        return;
    }
    proposal_commit_command(core, AQ_TAKE(a->batch), adoption_on_committed, a);
}
