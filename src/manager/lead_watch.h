/* SPDX-License-Identifier: Apache-2.0 */
/* lead_watch.h - a thread that looks at who leads, five times a second, and takes the lead if told to
 *
 * Reading the row blocks for as long as the database's server does not answer, so it has a thread
 * of its own. The callbacks come on the loop's thread, never from within a function of this header;
 * what was read before the last one and not told yet is left out.
 */
#ifndef AQ_MANAGER_LEAD_WATCH_H
#define AQ_MANAGER_LEAD_WATCH_H

#include <uv.h>

#include "base/error.h"
#include "store/leadership.h"

#define LEAD_WATCH_USEC (200 * USEC_PER_MSEC)

struct lead_watch;

struct lead_watch_ops {
    /* The row as it is. 'is_new': read by another connection than the last one. */
    void (*on_view)(void *data, const struct leader_view *view, bool is_new);
    /* It could not be read: as of leadership_read(), or the server is away. Tried again. */
    void (*on_error)(void *data, int r, const struct aq_error *err);
    /* The end of lead_watch_take(): 0 and the epoch, or as of leadership_take(). */
    void (*on_taken)(void *data, int r, int64_t epoch, const struct aq_error *err);
};

/* Begins to look. 'uri' is copied. */
int lead_watch_new(uv_loop_t *loop, const char *uri, const struct lead_watch_ops *ops, void *data,
                   struct lead_watch **ret, struct aq_error *err);

/* Once its turn has come; on_taken() follows. Not while one is under way. */
void lead_watch_take(struct lead_watch *watch, const struct leader_view *seen,
                     const struct leader_claim *self);

/* A leader does not look: its commits tell. While paused no on_view() and no on_error() come, a
 * take that has not begun is forgotten, and the connection is closed.
 */
void lead_watch_pause(struct lead_watch *watch, bool is_paused);

/* Waits for the thread, which may wait for the server for some seconds. NULL is fine. The loop must
 * run once more.
 */
void lead_watch_free(struct lead_watch *watch);

#endif
