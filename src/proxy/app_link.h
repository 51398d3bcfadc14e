/* SPDX-License-Identifier: Apache-2.0 */
/* app_link.h - a connection to an app, by the best way there is
 *
 * With a ticket (route.h) the app's agent is asked, by its socket or by TLS; else the manager, which
 * gives a ticket, or where an agent cannot be reached passes the bytes itself. Loop's thread only;
 * callbacks never come from within a call, and each may close the link.
 */
#ifndef AQ_PROXY_APP_LINK_H
#define AQ_PROXY_APP_LINK_H

#include "base/pump.h"
#include "proxy/proxy.h"

struct app_link;

struct app_link_ops {
    /* The app takes bytes; or 'err' says why there is no connection: the link is gone. Nothing was
     * sent to the app then.
     */
    void (*on_open)(void *data, const struct aq_error *err);
    void (*on_data)(void *data, const char *bytes, size_t len);
    void (*on_drain)(void *data);
    /* Once after on_open(), unless app_link_close() came first; the link is gone. 'err' NULL = the app
     * has closed the connection in order.
     */
    void (*on_close)(void *data, const struct aq_error *err);
};

/* -ENOTCONN if the manager is away and no ticket is good. */
int app_link_open(struct proxy *proxy, const struct msg_app_connect *want,
                  const struct app_link_ops *ops, void *data, struct app_link **ret,
                  struct aq_error *err);
/* Open, and the app has neither said anything that on_data() has not had, nor left. */
bool app_link_is_quiet(const struct app_link *link);
/* What was written goes out. NULL is fine. */
void app_link_close(struct app_link *link);

/* An end of a pump that is a struct app_link: open with on_open(). */
extern const struct pump_ops app_link_pump;

#endif
