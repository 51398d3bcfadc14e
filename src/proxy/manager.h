/* SPDX-License-Identifier: Apache-2.0 */
/* manager.h - what the proxy asks of the manager: to redeem a token, and a stream to an app
 *
 * Loop's thread only; callbacks never come from within a call.
 */
#ifndef AQ_PROXY_MANAGER_H
#define AQ_PROXY_MANAGER_H

#include "base/list.h"
#include "front/program.h"

struct manager_ask;

struct manager {
    struct front *front;
    struct list asks;    /* struct manager_ask */
    size_t redeem_count; /* of these */
};

void manager_init(struct manager *manager, struct front *front);
/* No callbacks follow; streams that are open are the callers'. */
void manager_done(struct manager *manager);

/* front_type.on_message() and front_type.on_disconnected(). */
void manager_on_message(struct manager *manager, const struct message *msg);
void manager_on_disconnected(struct manager *manager);

/* 'got' or 'err', once; the ask is gone then. */
typedef void manager_redeemed_fn(void *data, const struct msg_app_redeemed *got,
                                 const struct aq_error *err);
int manager_redeem(struct manager *manager, const char *token, manager_redeemed_fn *fn, void *data,
                   struct manager_ask **ret, struct aq_error *err);

/* 'stream', whose ops are called with the same data from now on; 'route', borrowed, if the app can be
 * reached without the manager and want->direct is set; or 'err'.
 */
typedef void manager_stream_fn(void *data, struct link_stream *stream,
                               const struct msg_app_route *route, const struct aq_error *err);
int manager_connect(struct manager *manager, const struct msg_app_connect *want,
                    const struct link_stream_ops *ops, manager_stream_fn *fn, void *data,
                    struct manager_ask **ret, struct aq_error *err);

/* May this user still connect? If not, ports_on_denied() is called, or routes_on_denied() where the id
 * is a ticket's.
 */
void manager_check(const struct manager *manager, const struct msg_app_connect *want);

/* The answer is not wanted any more. NULL is fine. */
void manager_cancel(struct manager_ask *ask);

#endif
