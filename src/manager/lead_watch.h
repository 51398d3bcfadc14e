/* SPDX-License-Identifier: Apache-2.0 */
/* lead_watch.h - a thread that reads five times a second which manager leads, and takes the lead on
 * request
 *
 * Reading the row blocks while the database server does not answer, hence the thread. Callbacks run
 * on the loop's thread, never from within a function of this header. A view that is newer than an
 * undelivered one replaces it.
 */
#ifndef AQ_MANAGER_LEAD_WATCH_H
#define AQ_MANAGER_LEAD_WATCH_H

#include <uv.h>

#include "base/error.h"
#include "store/leadership.h"

#define LEAD_WATCH_USEC (200 * USEC_PER_MSEC)

struct lead_watch;

struct lead_watch_ops {
    /* The row was read. 'is_new': by another connection than the previous view. */
    void (*on_view)(void *data, const struct leader_view *view, bool is_new);
    /* The row could not be read: 'r' is of leadership_open() or leadership_read(). Retried. */
    void (*on_error)(void *data, int r, const struct aq_error *err);
    /* lead_watch_take() has ended: r is 0, with the epoch, or an error of leadership_take(). */
    void (*on_taken)(void *data, int r, int64_t epoch, const struct aq_error *err);
};

/* Starts the thread. 'uri' is copied. -errno if it cannot be started. */
int lead_watch_new(uv_loop_t *loop, const char *uri, const struct lead_watch_ops *ops, void *data,
                   struct lead_watch **ret, struct aq_error *err);

/* Take the lead from the holder of 'seen'. on_taken() follows; until then it must not be called
 * again.
 */
void lead_watch_take(struct lead_watch *watch, const struct leader_view *seen,
                     const struct leader_claim *self);

/* Pause while this manager leads, as its commits show whether it still does. A paused watch calls
 * neither on_view() nor on_error(), drops a take that has not begun, and closes its connection.
 */
void lead_watch_pause(struct lead_watch *watch, bool is_paused);

/* Joins the thread, which may be waiting for the server for up to 5 s. NULL is allowed. The loop
 * must run once more.
 */
void lead_watch_free(struct lead_watch *watch);

#endif
