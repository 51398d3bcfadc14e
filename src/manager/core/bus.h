/* bus.h - what happens, as it is applied; part of core.h, whose rules hold here
 *
 * Session events: session_enqueued, _scheduled, _preparing, _pulling,
 * _creating, _started, _restarting, _rescheduling, _terminating, _terminated
 * (also of one that ends as ERROR), _cancelled, and for a batch session that
 * has a result, just before its end, _success or _failure. Kernel events: kernel_preparing, _pulling,
 * _creating, _started, _terminating, _terminated, _cancelled. Of passing
 * interest only: session_image_pull, how far an agent has come with the
 * session's image; kernel_gpu_misuse, that a program uses a GPU past its part.
 */
#ifndef AQ_MANAGER_CORE_BUS_H
#define AQ_MANAGER_CORE_BUS_H

#include "manager/core/images.h"
#include "model/session.h"

struct core;

struct core_event {
    const char *name;             /* "session_started", "kernel_terminated" ... */
    const struct session *session; /* as it is after the change, also when it has ended */
    const struct kernel *kernel;  /* NULL for session events */
    const char *reason;           /* "" = none */
    bool has_exit;
    int exit_code;
    int64_t at_usec;
    const struct core_image_status *image; /* of session_image_pull, else NULL */
    const char *misuse;           /* of kernel_gpu_misuse, else NULL: a line each */
};

struct core_subscriber;
/* Called once per event, in commit order. Must not block and must not
 * subscribe; may end its own subscription, no other.
 */
typedef void (*core_event_fn)(void *data, const struct core_event *event);

/* Events of one session (may be one that does not exist yet), or of all if
 * 'session_id' is NULL. NULL if memory is short. What happened before the call
 * is in memory or in the store, so look there after subscribing.
 */
struct core_subscriber *core_subscribe(struct core *core, const struct uuid *session_id,
                                       core_event_fn fn, void *data);
void core_unsubscribe(struct core *core, struct core_subscriber *subscriber);

#endif
