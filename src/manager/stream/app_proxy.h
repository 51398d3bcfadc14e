/* SPDX-License-Identifier: Apache-2.0 */
/* app_proxy.h - what proxies ask of the manager (core/fronts.h), and the tokens that lead there
 *
 * A user gets a token for an app of a session, and shows it to a proxy with the browser. The proxy
 * has it redeemed, once and within a minute, and learns for whom it is. To connect it then asks for
 * a ticket with which it reaches the app's agent itself (app_ticket.h), or for a stream to the app
 * through the manager: whether the session lives and this user may use it is looked at each time,
 * and as long as it lasts.
 */
#ifndef AQ_MANAGER_STREAM_APP_PROXY_H
#define AQ_MANAGER_STREAM_APP_PROXY_H

#include "manager/call/api.h"

struct app_proxy;

/* Answers the core's proxies from now on. */
struct app_proxy *app_proxy_new(struct api *api);
/* End all streams and answer nobody any more. */
void app_proxy_stop(struct app_proxy *proxy);
/* NULL is fine. */
void app_proxy_free(struct app_proxy *proxy);

/* What proxies call the session for apps of this kernel: the session's id for the main one, else
 * the kernel's. So each kernel has addresses and cookies of its own there.
 */
struct uuid app_proxy_target(const struct kernel *kernel);

/* The kernel, if its session lives and the user of this key may use this app of it; else NULL and
 * 'err' of the kinds that app.refused has. 'id' is the session's or app_proxy_target().
 */
const struct kernel *app_proxy_find_kernel(const struct api *api, const struct uuid *id,
                                           const char *app, const char *access_key,
                                           struct aq_error *err);

/* How long a proxy may let in users without asking; before the first request. */
void app_proxy_set_ticket_lifetime(struct app_proxy *proxy, int64_t usec);

#define APP_TOKEN_USEC (60 * USEC_PER_SEC)
#define APP_TOKEN_TEXT_MAX 65

/* 'token' is borrowed, NULL unless r is 0. */
typedef void app_token_fn(void *data, int r, const struct aq_error *err, const char *token);
/* 'target' is the session's id, or app_proxy_target(). Durable when 'done' says it. */
void app_proxy_make_token(struct api *api, const struct uuid *target, const char *app,
                          const char *access_key, app_token_fn *done, void *data);

#endif
