/* SPDX-License-Identifier: Apache-2.0 */
/* manager.h - what the proxy asks of the manager: to redeem a token, and a stream to an app
 *
 * Loop's thread only; callbacks never come from within a call.
 */
#ifndef AQ_PROXY_MANAGER_H
#define AQ_PROXY_MANAGER_H

#include "link/link.h"
#include "proxy/identity.h"

struct manager;
struct manager_ask;

struct manager_events {
    void (*on_connected)(void *data);
    void (*on_refused)(void *data, const char *kind, const char *text); /* for good */
    /* To what was asked with manager_check() the answer is no. */
    void (*on_denied)(void *data, const struct uuid *request_id, const char *text);
};

int manager_new(uv_loop_t *loop, const struct settings *settings,
                const struct link_identity *identity, const struct manager_events *events,
                void *data, struct manager **ret, struct aq_error *err);
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

/* May this user still connect? on_denied() comes if not. */
void manager_check(struct manager *manager, const struct msg_app_connect *want);

/* The answer is not wanted any more. NULL is fine. */
void manager_cancel(struct manager_ask *ask);

#endif
