/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - a pass over a snapshot: a scheduler that lives for one pass */
#include <string.h>

#include "sched/snapshot.h"
#include "sched/scheduler_internal.h"

static int snapshot_add_agents(struct sched *s, const struct sched_snapshot *snap,
                               struct aq_error *err)
{
    for (size_t i = 0; i < snap->agent_count; i++) {
        int r = sched_set_agent(s, &snap->agents[i], err);

        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < snap->unreachable_count; i++)
        (void)sched_set_unreachable(s, snap->unreachable[i].a, snap->unreachable[i].b, true);
    return 0;
}

static void snapshot_add_accounts(struct sched *s, const struct sched_snapshot *snap)
{
    for (size_t i = 0; i < snap->account_count; i++)
        sched_set_account(s, (uint32_t)i, &snap->accounts[i]);
    for (size_t i = 0; i < snap->owner_count; i++)
        sched_set_owner(s, (uint32_t)i, &snap->owners[i]);
}

int sched_from_snapshot(const struct sched_snapshot *snap, struct sched **ret, struct aq_error *err)
{
    AQ_CLEANUP(sched_freep) struct sched *s = sched_new(snap->types, &snap->options);
    uint32_t handle;
    int r = snapshot_add_agents(s, snap, err);

    if (r == 0)
        snapshot_add_accounts(s, snap);
    /* before any begins: what its sessions hold, all of them are told to, was the agent's so far */
    for (size_t i = 0; i < snap->booking_count && r == 0; i++)
        r = sched_booking_set(s, &snap->bookings[i], INT64_MIN, err);
    for (size_t i = 0; i < snap->running_count && r == 0; i++)
        r = entry_add_running(s, &snap->running[i], true, &handle, err);
    booked_advance(s, snap->now_usec);
    if (r == 0)
        *ret = AQ_TAKE(s);
    return r;
}

/* Handles are given in order: those that run, then those that wait. */
static void snapshot_number_outcome(const struct sched_snapshot *snap, struct sched_outcome *out)
{
    out->session -= (uint32_t)snap->running_count;
}

int sched_run(const struct sched_snapshot *snap, struct arena *arena, struct sched_result *ret,
              struct aq_error *err)
{
    AQ_CLEANUP(sched_freep) struct sched *s = NULL;
    uint32_t handle;
    int r = sched_from_snapshot(snap, &s, err);

    for (size_t i = 0; i < snap->session_count && r == 0; i++)
        r = sched_add(s, &snap->sessions[i], &handle, err);
    if (r < 0)
        return r;
    sched_pass(s, snap->now_usec, arena, ret);
    for (size_t i = 0; i < ret->count; i++)
        snapshot_number_outcome(snap, &ret->outcomes[i]);
    ret->blocker -= (uint32_t)snap->running_count;
    return 0;
}
