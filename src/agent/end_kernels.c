/* SPDX-License-Identifier: Apache-2.0 */
/* end_kernels.c - all kernels of this machine are ended, as its agent is to be removed
 *
 * The manager hears of it if it can be reached, and forgets them; nobody waits
 * long for that.
 */
#include "agent/kernel/kernel.h"
#include "base/clock.h"
#include "model/session.h"

#define LOOK_MSEC 20
#define GRACE_USEC (10 * USEC_PER_SEC)
#define FORGET_USEC (3 * USEC_PER_SEC)
#define GIVE_UP_USEC (60 * USEC_PER_SEC)

static size_t end_kernels_count_left(const struct agent_daemon *agent)
{
    size_t left = 0;

    for (size_t i = 0; i < agent->kernels.count; i++)
        left += !kernel_is_final(agent->kernels.entries[i].value);
    return left;
}

static void end_kernels_shutdown_poll(uv_timer_t *timer)
{
    struct agent_daemon *agent = timer->data;
    struct agent_shutdown *shutdown = &agent->shutdown;
    int64_t now = clock_monotonic_usec();
    size_t left = end_kernels_count_left(agent);

    agent->is_draining = true; /* whatever the manager says */
    if (left && now < shutdown->give_up_usec)
        return;
    if (!left && !shutdown->ended_usec)
        shutdown->ended_usec = now;
    if (!left && agent->kernels.count && now < shutdown->ended_usec + FORGET_USEC)
        return;
    (void)uv_timer_stop(timer);
    shutdown->on_done(agent->data, left);
}

void agent_end_kernels(struct agent_daemon *agent, agent_ended_fn on_done)
{
    agent->shutdown = (struct agent_shutdown){
        .on_done = on_done, .give_up_usec = clock_monotonic_usec() + GIVE_UP_USEC
    };
    for (size_t i = 0; i < agent->kernels.count; i++) {
        const struct local_kernel *k = agent->kernels.entries[i].value;
        const struct msg_kernel_destroy destroy = { .kernel_id = k->id,
                                                    .grace_usec = GRACE_USEC,
                                                    .reason = REASON_AGENT_REMOVED };

        kernel_on_destroy(agent, &destroy);
    }
    (void)uv_timer_start(&agent->shutdown_poll, end_kernels_shutdown_poll, 0, LOOK_MSEC);
}
