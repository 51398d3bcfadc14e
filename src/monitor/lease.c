/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - ends the program of a node that has lost its manager, with or without an agent
 *
 * CLOCK_BOOTTIME counts while the machine is suspended: a program whose lease ended meanwhile must
 * not go on when the machine wakes up.
 */
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "monitor/monitor_internal.h"

static void lease_set_timer(const struct monitor *m, int64_t at_usec)
{
    const struct itimerspec when = { .it_value = { .tv_sec = at_usec / USEC_PER_SEC,
                                                   .tv_nsec = at_usec % USEC_PER_SEC * 1000 } };

    (void)timerfd_settime(m->lease.timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void lease_set(struct monitor *m, int64_t until_usec, int64_t grace_usec)
{
    m->lease.until_usec = AQ_MAX(until_usec, INT64_C(0));
    m->lease.grace_usec = AQ_MAX(grace_usec, INT64_C(0));
    lease_set_timer(m, m->lease.until_usec);
}

void lease_on_timer(struct monitor *m)
{
    int64_t kill_usec = m->lease.until_usec + m->lease.grace_usec;
    int64_t left = kill_usec - clock_boottime_usec();
    uint64_t times;

    if (read(m->lease.timer, &times, sizeof(times)) < 0)
        return;
    AQ_FAULT("monitor.lease.over");
    if (left <= 0) {
        monitor_end_program(m, MONITOR_LEASE_OVER, 0, 0);
        return;
    }
    log_warning("no contact with the manager until the lease ended: ending the program");
    if (!m->has_grace || m->next == MONITOR_STEP_TERM) /* else it got SIGTERM, perhaps with less */
        monitor_end_program(m, MONITOR_LEASE_OVER, 0, left);
    lease_set_timer(m, kill_usec);
    AQ_FAULT("monitor.lease.signalled");
}
