/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - a scheduler that is kept between passes: its agents and sessions come and go */
#include "sched/scheduler.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sched/fragmentation.h"
#include "sched/reach.h"
#include "sched/scheduler_internal.h"

struct sched *sched_new(const struct slot_types *types, const struct sched_options *options)
{
    struct sched *s = aq_alloc(sizeof(*s));

    cluster_init(&s->cluster, types, options->slot_priority, options->slot_priority_count);
    s->options = *options;
    s->next_booking_usec = INT64_MAX;
    s->capacity = aq_alloc_array(s->cluster.width, sizeof(*s->capacity));
    s->column_types = aq_alloc_array(s->cluster.width, sizeof(*s->column_types));
    for (size_t c = 0; c < s->cluster.columns; c++)
        s->column_types[c] = slot_types_get(types, s->cluster.names[c]);
    if (options->selector.ops->open && !options->selector.data)
        s->options.selector.data = options->selector.ops->open();
    s->owns_selector = s->options.selector.data != options->selector.data;
    return s;
}

void sched_free(struct sched *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->entry_count; i++)
        entry_done(&s->entries[i]);
    for (size_t i = 0; i < s->account_count; i++) {
        free(s->accounts[i].limits);
        free(s->accounts[i].used);
    }
    for (size_t i = 0; i < s->owner_count; i++)
        free(s->owners[i].used);
    if (s->owns_selector)
        s->options.selector.ops->close(s->options.selector.data);
    cluster_done(&s->cluster);
    free(s->column_types);
    strbuf_done(&s->choices);
    free(s->entries);
    free(s->free_entries);
    for (size_t i = 0; i < s->reservation_count; i++) {
        for (uint32_t q = 0; q < s->reservations[i].count; q++)
            free(s->reservations[i].holds[q].parts);
        free(s->reservations[i].holds);
        free(s->reservations[i].reqs);
    }
    free(s->reservations);
    for (size_t i = 0; i < s->booking_count; i++)
        booked_done(&s->bookings[i]);
    free(s->bookings);
    free(s->queue);
    free(s->accounts);
    free(s->owners);
    free(s->capacity);
    free(s);
}

/* ---- agents ---- */

/* Take what sessions hold on 'node' off what was said to be free there. */
static void scheduler_hold_again(struct sched *s, uint32_t node)
{
    for (size_t i = 0; i < s->entry_count; i++) {
        struct sched_entry *e = &s->entries[i];

        if (e->status != ENTRY_PLACED && e->status != ENTRY_PREEMPTING)
            continue;
        for (uint32_t q = 0; q < e->req_count; q++)
            if (e->holds[q].node == node)
                cluster_hold_parts(&s->cluster, node, e->reqs[q], e->holds[q].parts,
                                   e->holds[q].part_count);
    }
    for (size_t i = 0; i < s->reservation_count; i++) {
        const struct reservation *r = &s->reservations[i];

        for (uint32_t q = 0; q < r->count; q++)
            if (r->holds[q].node == node)
                cluster_hold_parts(&s->cluster, node, r->reqs[q], r->holds[q].parts,
                                   r->holds[q].part_count);
    }
}

int sched_set_agent(struct sched *s, const struct sched_agent *agent, struct aq_error *err)
{
    bool is_new = cluster_find_agent(&s->cluster, agent->id) == CLUSTER_NONE;
    uint32_t node;
    int r = cluster_set_agent(&s->cluster, agent, &node, err);

    if (r == 0 && !is_new)
        scheduler_hold_again(s, node);
    if (r == 0)
        booked_take_agent(s, node);
    return r;
}

int sched_set_unreachable(struct sched *s, const char *agent_a, const char *agent_b,
                          bool is_unreachable)
{
    uint32_t a = cluster_find_agent(&s->cluster, agent_a);
    uint32_t b = cluster_find_agent(&s->cluster, agent_b);

    if (a == CLUSTER_NONE || b == CLUSTER_NONE)
        return -ENOENT;
    reach_set_cut(&s->cluster, a, b, is_unreachable);
    return 0;
}

/* ---- sessions ---- */

int sched_add_what_if(struct sched *s, const struct sched_session *session, uint32_t *ret_handle,
                      struct aq_error *err)
{
    struct queue_item q = wait_queue_item(session);
    size_t at = wait_queue_find(s, &q);
    int r;

    if (at < s->queue_count && s->queue[at].handle != NO_HANDLE
        && wait_queue_compare(&s->queue[at], &q) == 0)
        return aq_fail(err, EEXIST, "session %lld waits already", (long long)session->row);
    if ((r = entry_add(s, session, ret_handle, err)) < 0)
        return r;
    s->entries[*ret_handle].status = ENTRY_WAITING;
    wait_queue_insert(s, *ret_handle);
    return 0;
}

int sched_add(struct sched *s, const struct sched_session *session, uint32_t *ret_handle,
              struct aq_error *err)
{
    const struct selector *selector = &s->options.selector;
    int r = sched_add_what_if(s, session, ret_handle, err);

    if (r < 0)
        return r;
    if (selector->ops->on_arrival)
        for (uint32_t i = 0; i < s->entries[*ret_handle].req_count; i++)
            selector->ops->on_arrival(selector->data, &s->cluster, s->entries[*ret_handle].reqs[i]);
    return 0;
}

/* The agent named in the request; devices are chosen here unless the request names them. */
static int scheduler_hold_known_place(struct sched *s, struct sched_entry *e, size_t req,
                                      const struct sched_place *place, bool is_counted)
{
    struct hold *h = &e->holds[req];
    uint32_t node = booked_find_node(s, e->booking, place->agent_id);

    if (node == CLUSTER_NONE)
        return -ENOENT;
    if (!place->part_count && !is_counted) {
        entry_hold(s, e, req, node, -1);
        return 0;
    }
    for (size_t i = 0; i < place->part_count; i++)
        if (place->parts[i].device >= s->cluster.nodes[node].device_count)
            return -EINVAL;
    if (place->part_count)
        h->parts = aq_alloc_array(place->part_count, sizeof(*h->parts));
    h->part_count = (uint32_t)place->part_count;
    for (size_t i = 0; i < place->part_count; i++)
        h->parts[i] = (struct device_part){ place->parts[i].device, place->parts[i].amount };
    if (!is_counted)
        cluster_hold_parts(&s->cluster, node, e->reqs[req], h->parts, h->part_count);
    h->node = node;
    return 0;
}

int entry_add_running(struct sched *s, const struct sched_running *running, bool is_counted,
                      uint32_t *ret_handle, struct aq_error *err)
{
    struct sched_entry *e;
    int r = entry_add(s, running->session, ret_handle, err);

    if (r < 0)
        return r;
    e = &s->entries[*ret_handle];
    for (uint32_t i = 0; i < e->req_count && r == 0; i++)
        if ((r = scheduler_hold_known_place(s, e, i, &running->places[i], is_counted)) < 0) {
            aq_fail_field(err, -r, "places",
                          r == -ENOENT ? "there is no agent '%s'" : "agent '%s' has no such device",
                          running->places[i].agent_id);
            for (uint32_t done = 0; !is_counted && done < i; done++)
                entry_release(s, e, done);
            entry_drop(s, e);
            return r;
        }
    e->status = ENTRY_PLACED;
    e->started_usec = running->started_usec;
    e->is_victim = running->is_terminating;
    if (is_counted)
        entry_count(s, e, 1);
    else
        entry_charge(s, e, 1);
    return 0;
}

int sched_add_running(struct sched *s, const struct sched_running *running, uint32_t *ret_handle,
                      struct aq_error *err)
{
    return entry_add_running(s, running, false, ret_handle, err);
}

void sched_mark_terminating(struct sched *s, uint32_t handle)
{
    s->entries[handle].is_victim = true;
}

void sched_drop(struct sched *s, uint32_t handle)
{
    struct sched_entry *e = &s->entries[handle];
    const struct selector *selector = &s->options.selector;

    if (e->status == ENTRY_WAITING) {
        wait_queue_remove(s, e);
    } else {
        for (uint32_t i = 0; i < e->req_count; i++)
            entry_release(s, e, i);
        entry_charge(s, e, -1);
        assert(e->status != ENTRY_PREEMPTING || s->preempting > 0);
        s->preempting -= e->status == ENTRY_PREEMPTING;
        if (selector->ops->on_departure)
            selector->ops->on_departure(selector->data);
    }
    entry_drop(s, e);
}

uint32_t sched_retries(const struct sched *s, uint32_t handle)
{
    return s->entries[handle].retries;
}
