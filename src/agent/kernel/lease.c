/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - how long kernels may run without contact with the manager */
#include "agent/kernel/lease.h"

#include "base/clock.h"
#include "base/fault.h"

/* A monitor is woken up only for a lease that is longer by more than this part. */
#define PART 16

/* CLOCK_BOOTTIME; 0 = the kernel has no lease. */
static int64_t lease_until_usec(const struct local_kernel *k)
{
    const struct kernel_spec *spec = kernel_get_spec(k);

    return spec->lease_usec > 0 ? k->agent->contact_usec + spec->lease_usec : 0;
}

static bool lease_is_passed_on(const struct local_kernel *k, int64_t until_usec)
{
    int64_t more = until_usec - k->lease_until_usec;

    return more == 0
           || (more > 0 && k->lease_until_usec > 0 && more < kernel_get_spec(k)->lease_usec / PART);
}

void lease_pass_on(struct local_kernel *k)
{
    int64_t until_usec = lease_until_usec(k);

    if (!k->run || !k->agent->contact_usec || lease_is_passed_on(k, until_usec))
        return;
    runtime_set_lease(k->run, until_usec, kernel_get_spec(k)->lease_grace_usec);
    k->lease_until_usec = until_usec;
}

bool lease_holds_back(struct local_kernel *k)
{
    int64_t until_usec = lease_until_usec(k);

    k->waits_for_contact = until_usec
                           && (!k->agent->contact_usec || clock_boottime_usec() >= until_usec);
    return k->waits_for_contact;
}

static void lease_change(struct agent_daemon *agent, const struct msg_kernel_lease *lease)
{
    struct local_kernel *k = kernel_find(agent, &lease->kernel_id);

    if (!k || k->attempt != lease->attempt || k->command.type == MSG_UNKNOWN)
        return;
    k->command.kernel_create.spec.lease_usec = lease->lease_usec;
    k->command.kernel_create.spec.lease_grace_usec = lease->lease_grace_usec;
    k->lease_until_usec = LEASE_UNKNOWN;
}

/* To the monitors, and start what waited. */
static void lease_pass_all_on(struct agent_daemon *agent)
{
    for (size_t i = 0; i < agent->kernels.count; i++) {
        struct local_kernel *k = agent->kernels.entries[i].value;

        lease_pass_on(k);
        if (k->waits_for_contact && !lease_holds_back(k))
            kernel_step(k);
    }
}

void lease_drop_all(struct agent_daemon *agent)
{
    agent->contact_usec = clock_boottime_usec();
    for (size_t i = 0; i < agent->kernels.count; i++) {
        struct local_kernel *k = agent->kernels.entries[i].value;

        k->command.kernel_create.spec.lease_usec = 0;
    }
    lease_pass_all_on(agent);
}

void lease_take_reply(struct agent_daemon *agent, const struct msg_heartbeat_reply *reply)
{
    for (size_t i = 0; i < reply->lease_count; i++)
        lease_change(agent, &reply->leases[i]);
    if (reply->uptime_usec > agent->contact_usec && reply->uptime_usec <= clock_boottime_usec())
        agent->contact_usec = reply->uptime_usec;
    lease_pass_all_on(agent);
    AQ_FAULT("agent.lease.renewed");
}
