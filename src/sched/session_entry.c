/* SPDX-License-Identifier: Apache-2.0 */
/* session_entry.c - a session inside a scheduler: made from what is asked for, and what it holds */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/fragmentation.h"
#include "sched/scheduler_internal.h"

void entry_done(struct sched_entry *e)
{
    for (uint32_t i = 0; e->holds && i < e->req_count; i++)
        free(e->holds[i].parts);
    free(e->holds);
    free(e->reqs);
    claim_free(e->claim);
    if (e->more) {
        free(e->more->designated);
        free(e->more->group);
        free(e->more->scope);
        free(e->more);
    }
    *e = (struct sched_entry){ 0 };
}

/* ---- what it holds ---- */

void entry_hold(struct sched *s, struct sched_entry *e, size_t req, uint32_t node, int32_t device)
{
    struct hold *h = &e->holds[req];

    assert(req < e->req_count && h->node == CLUSTER_NONE);
    cluster_hold(&s->cluster, node, e->reqs[req], device, &h->parts, &h->part_count);
    h->node = node;
}

void entry_release(struct sched *s, struct sched_entry *e, size_t req)
{
    struct hold *h = &e->holds[req];

    assert(req < e->req_count);
    if (h->node != CLUSTER_NONE)
        cluster_release(&s->cluster, h->node, e->reqs[req], h->parts, h->part_count);
    free(h->parts);
    *h = (struct hold){ .node = CLUSTER_NONE };
}

/* What it holds of single devices, if the selector looks at devices. */
static void entry_list_chosen(const struct sched *s, const struct sched_entry *e, uint32_t req,
                              struct arena *arena, struct sched_choice *ret)
{
    const struct hold *h = &e->holds[req];
    struct sched_part *parts;

    *ret = (struct sched_choice){ .parts = NULL };
    if (h->part_count == 0)
        return;
    ret->is_binding = booked_has_devices(s, h->node);
    if (!s->options.selector.ops->score && !ret->is_binding)
        return;
    parts = arena_array(arena, h->part_count, sizeof(*parts));
    for (uint32_t i = 0; i < h->part_count; i++) {
        uint32_t device = h->parts[i].device;
        uint16_t column = s->cluster.nodes[h->node].devices[device].column;

        if (ret->is_binding || h->parts[i].amount == e->reqs[req]->amounts[column])
            parts[ret->count++] = (struct sched_part){ device, h->parts[i].amount };
    }
    ret->parts = parts;
}

void entry_list_places(const struct sched *s, const struct sched_entry *e, struct arena *arena,
                       struct sched_outcome *to)
{
    uint32_t *agents = arena_array(arena, e->kernel_count, sizeof(*agents));
    struct sched_choice *chosen = arena_array(arena, e->kernel_count, sizeof(*chosen));

    for (uint32_t k = 0; k < e->kernel_count; k++) {
        uint32_t req = e->single_node ? 0 : k;

        agents[k] = s->cluster.nodes[e->holds[req].node].number;
        if (k > req)
            chosen[k] = chosen[req];
        else
            entry_list_chosen(s, e, req, arena, &chosen[k]);
    }
    to->agents = agents;
    to->chosen = chosen;
}

/* ---- contents ---- */

static void entry_read_more(const struct sched *s, const struct sched_session *session,
                            struct sched_entry *e)
{
    struct sched_entry_more *more;

    if (!session->designated_count && !session->failed_agent && !session->group && !session->scope)
        return;
    e->more = more = aq_alloc(sizeof(*more));
    more->failed = session->failed_agent ? cluster_find_agent(&s->cluster, session->failed_agent)
                                         : CLUSTER_NONE;
    more->designated_strict = session->designated_strict;
    more->grouping = session->group ? session->grouping : SCHED_UNGROUPED;
    more->grouping_strict = session->grouping_strict;
    more->group = aq_strdup(session->group);
    more->scope = aq_strdup(session->scope);
    if (!session->designated_count)
        return;
    more->designated = aq_alloc_array(session->designated_count, sizeof(*more->designated));
    for (size_t i = 0; i < session->designated_count; i++)
        more->designated[more->designated_count++] = cluster_find_agent(&s->cluster,
                                                                        session->designated[i]);
}

static enum sched_verdict entry_dependency_verdict(const struct sched_session *session)
{
    enum sched_verdict verdict = SCHED_PLACED;

    for (size_t i = 0; i < session->dependency_count; i++) {
        enum dependency_state state = dependency_state(&session->dependencies[i]);

        if (state == DEPENDENCY_UNMET)
            return SCHED_DOOMED;
        if (state == DEPENDENCY_WAITING)
            verdict = SCHED_DEPENDENCY;
    }
    return verdict;
}

static void entry_fill_requests(struct sched *s, const struct sched_session *session,
                                struct sched_entry *e)
{
    struct slot_request_spec spec = { .architecture = session->architecture,
                                      .models = session->models,
                                      .model_count = session->model_count,
                                      .volumes = session->volumes,
                                      .volume_count = session->volume_count,
                                      .booking = booked_number(s, session->booking),
                                      .may_split = session->may_split };
    uint32_t count = session->single_node ? 1 : (uint32_t)session->kernel_count;

    e->reqs = aq_alloc_array(count, sizeof(struct slot_request *));
    for (uint32_t i = 0; i < count; i++) {
        spec.kernels = session->single_node ? session->kernels : &session->kernels[i];
        spec.kernel_count = session->single_node ? session->kernel_count : 1;
        e->reqs[i] = slot_request_get(&s->cluster, &spec);
    }
    e->req_count = count;
}

struct slot_request **entry_read_requests(struct sched *s, const struct sched_session *session,
                                          uint32_t *ret_count)
{
    struct sched_entry e = { 0 };

    entry_fill_requests(s, session, &e);
    *ret_count = e.req_count;
    return e.reqs;
}

void sched_request_shape(struct sched *s, const struct sched_session *session,
                         struct request_shape *ret)
{
    struct sched_entry e = { 0 };

    entry_fill_requests(s, session, &e);
    (void)request_shape_of(&s->cluster, e.reqs[0], ret);
    for (uint32_t i = 0; i < e.req_count; i++)
        slot_request_release(&s->cluster, e.reqs[i]);
    free(e.reqs);
}

static void entry_read_session(struct sched *s, const struct sched_session *session,
                               struct sched_entry *e)
{
    *e = (struct sched_entry){ .row = session->row,
                               .starts_usec = session->starts_usec,
                               .lifetime_usec = session->lifetime_usec,
                               .own_lifetime_usec = session->lifetime_usec,
                               .eligible_usec = session->eligible_usec,
                               .unit = session->unit,
                               .rank = session->rank,
                               .type = session->type,
                               .priority = session->priority,
                               .job_priority = session->job_priority,
                               .is_preemptible = session->is_preemptible,
                               .is_movable = session->is_movable,
                               .may_be_cut = session->may_be_cut,
                               .single_node = session->single_node,
                               .needs_network = session->needs_network,
                               .dependencies = entry_dependency_verdict(session),
                               .owner = session->owner,
                               .booking = booked_number(s, session->booking),
                               .retries = session->retries,
                               .kernel_count = (uint32_t)session->kernel_count };
    memcpy(e->accounts, session->accounts, sizeof(e->accounts));
    entry_fill_requests(s, session, e);
    entry_read_more(s, session, e);
    e->holds = aq_alloc_array(e->req_count + 1, sizeof(*e->holds));
    for (uint32_t i = 0; i < e->req_count; i++)
        e->holds[i].node = CLUSTER_NONE;
}

void entry_drop(struct sched *s, struct sched_entry *e)
{
    for (uint32_t i = 0; i < e->req_count; i++)
        slot_request_release(&s->cluster, e->reqs[i]);
    entry_done(e);
    vec_grow(&s->free_entries, &s->free_cap, s->free_count + 1, sizeof(*s->free_entries));
    s->free_entries[s->free_count++] = (uint32_t)(e - s->entries);
}

/* *ret is still ENTRY_FREE. */
int entry_add(struct sched *s, const struct sched_session *session, uint32_t *ret,
              struct aq_error *err)
{
    if (session->kernel_count == 0 || session->kernel_count > UINT16_MAX)
        return aq_fail_field(err, EINVAL, "kernels", "a session has 1 to %d kernels", UINT16_MAX);
    if (s->free_count) {
        *ret = s->free_entries[--s->free_count];
    } else {
        vec_grow(&s->entries, &s->entry_cap, s->entry_count + 1, sizeof(*s->entries));
        s->entries[s->entry_count] = (struct sched_entry){ 0 };
        *ret = (uint32_t)s->entry_count++;
    }
    entry_read_session(s, session, &s->entries[*ret]);
    return 0;
}
