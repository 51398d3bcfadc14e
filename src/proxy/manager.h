/* SPDX-License-Identifier: Apache-2.0 */
/* manager.h - what the proxy asks of the manager: to redeem a token, and a stream to an app
 *
 * Loop's thread only; callbacks never come from within a call.
 */
#ifndef AQ_PROXY_MANAGER_H
#define AQ_PROXY_MANAGER_H

#include "front/program.h"
#include "link/link.h"
#include "proxy/settings.h"

struct manager;
struct manager_ask;

/* To what was asked with manager_check() the answer is no. */
typedef void manager_denied_fn(void *data, const struct uuid *request_id, const char *text);

/* 'front' is told how it stands. */
int manager_new(uv_loop_t *loop, const struct settings *settings,
                const struct link_identity *identity, struct front *front,
                manager_denied_fn *on_denied, void *data, struct manager **ret,
                struct aq_error *err);
/* No callbacks follow; streams that are open are the callers'. NULL is fine. */
void manager_free(struct manager *manager);
bool manager_is_connected(const struct manager *manager);

/* 'got' or 'err', once; the ask is gone then. */
typedef void manager_redeemed_fn(void *data, const struct msg_app_redeemed *got,
                                 const struct aq_error *err);
int manager_redeem(struct manager *manager, const char *token, manager_redeemed_fn *fn, void *data,
                   struct manager_ask **ret, struct aq_error *err);

/* 'stream', whose ops are called with the same data from now on, or 'err'. */
typedef void manager_stream_fn(void *data, struct link_stream *stream, const struct aq_error *err);
int manager_connect(struct manager *manager, const struct msg_app_connect *want,
                    const struct link_stream_ops *ops, manager_stream_fn *fn, void *data,
                    struct manager_ask **ret, struct aq_error *err);

/* May this user still connect? The manager_denied_fn is called if not. */
void manager_check(struct manager *manager, const struct msg_app_connect *want);

/* The answer is not wanted any more. NULL is fine. */
void manager_cancel(struct manager_ask *ask);

#endif
