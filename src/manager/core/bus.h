/* SPDX-License-Identifier: Apache-2.0 */
/* bus.h - what happens, as it is applied; part of core.h, whose rules hold here
 *
 * Of sessions, when the change is durable:
 *   session_enqueued      made, or back in the queue
 *   session_waiting       it waits for another reason than before
 *   session_scheduled     it has agents
 *   session_preparing, session_pulling, session_creating
 *   session_started       all of its kernels run (after a restart, too)
 *   session_restarting
 *   session_preempted     it leaves its agents for another session
 *   session_rescheduling  it goes back to the queue
 *   session_idle_warning  it will end soon: the reason is that of its end (model/idle.h)
 *   session_terminating
 *   session_success, session_failure   a batch session has a result; just before its end
 *   session_terminated    the end, also of one that ends as ERROR
 *   session_cancelled     the end of one that never left the queue
 *
 * Of kernels, likewise:
 *   kernel_preparing, kernel_pulling, kernel_creating, kernel_started
 *   kernel_resized        it has other amounts of its devices
 *   kernel_terminating
 *   kernel_terminated     also of one that ends as ERROR
 *   kernel_cancelled
 *
 * These are stored (store/session_event.h), in this order. Nothing of the following is:
 *   session_idle_moved    it was extended or exempted, or its exemption was removed
 *   session_image_pull    how far an agent has come with the session's image
 *   kernel_gpu_misuse     a program uses more of a GPU than its part
 *   execution_started     code runs in the session, or waits there for code that runs
 *   execution_finished    it has ended
 *   execution_timeout     it took too long and was ended
 */
#ifndef AQ_MANAGER_CORE_BUS_H
#define AQ_MANAGER_CORE_BUS_H

#include "manager/core/images.h"
#include "model/session.h"
#include "store/session_event.h"

struct core;

struct core_event {
    const char *name;              /* "session_started", "kernel_terminated" ... */
    const struct session *session; /* as it is after the change, also when it has ended */
    const struct kernel *kernel;   /* NULL for session events */
    const char *reason;            /* "" = none */
    bool has_exit;
    int exit_code;
    int64_t at_usec;
    int64_t number; /* with at_usec its place in the store; 0 = it is not stored */
    const struct core_image_status *image; /* of session_image_pull, else NULL */
    const char *limit_violations;          /* of kernel_gpu_misuse, else NULL: a line each */
    const char *run_id;                    /* of execution_*, else NULL */
};

struct core_subscriber;
/* Called once per event, in commit order. Must not block. May end any subscription, also its own,
 * and subscribe; a new subscription begins with the next event, and an ended one gets none, not
 * even the event that is being published.
 */
typedef void (*core_event_fn)(void *data, const struct core_event *event);

/* Events of one session (may be one that does not exist yet), or of all if
 * 'session_id' is NULL. What happened before the call
 * is in memory or in the store, so look there after subscribing.
 *
 * The subscriber belongs to the caller until it unsubscribes, which it does once, before it frees
 * 'data' and before it replies to a request: nothing that can find 'data' is left then.
 */
struct core_subscriber *core_subscribe(struct core *core, const struct uuid *session_id,
                                       core_event_fn fn, void *data);
void core_unsubscribe(struct core *core, struct core_subscriber *subscriber);

/* The last stored one that subscribers were told of. */
struct session_event_place core_last_event(const struct core *core);

/* Announce one of execution_*, a static string, of a session's run; 'exit_code' may be NULL.
 * Nothing if the session has ended.
 */
void core_announce_execution(struct core *core, const struct uuid *session_id, const char *name,
                             const char *run_id, const int *exit_code);

#endif
