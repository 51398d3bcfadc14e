/* SPDX-License-Identifier: Apache-2.0 */
/* app_connection.h - a connection to an app, or a port, within a kernel's container
 *
 * A command in the container connects to 127.0.0.1 and passes bytes. So it reaches what is not
 * published, whichever way the agent itself can be reached. Of an app the command asks the
 * container's executor first, which starts it if need be; its answer is a line before all bytes.
 *
 * What goes through it is counted as the app's (core/session_use.h). Loop's thread only;
 * callbacks never come from within a call, and each may free the connection.
 */
#ifndef AQ_MANAGER_STREAM_APP_CONNECTION_H
#define AQ_MANAGER_STREAM_APP_CONNECTION_H

#include "base/pump.h"
#include "manager/stream/app_question.h"

struct app_connection;

struct app_connection_ops {
    /* The app listens; not called of a port, which is ready from the start. False: it has freed
     * the connection.
     */
    bool (*on_ready)(void *data);
    void (*on_bytes)(void *data, const char *bytes, size_t len);
    void (*on_bytes_end)(void *data); /* no more come; may be NULL */
    /* One of these, once, and last. Before it was ready: */
    void (*on_refused)(void *data, const struct aq_error *err);
    /* ... and after: 'is_unheard' = nobody listens there. */
    void (*on_closed)(void *data, bool is_unheard, const char *text);
};

/* 'port', or with 0 the app of 'params'. The connection is the pump's PUMP_KERNEL until it is freed
 * (command_stream.h), and its owner joins the client once it is ready. -EINVAL for a kernel that
 * does not run, -ENOTCONN if its agent is away.
 */
int app_connection_open(struct core *core, const struct kernel *kernel,
                        const struct app_params *params, uint16_t port, struct pump *pump,
                        const struct app_connection_ops *ops, void *data,
                        struct app_connection **ret, struct aq_error *err);

/* As pump_give() from PUMP_CLIENT; the bytes are counted. */
int app_connection_give(struct app_connection *c, const char *bytes, size_t len);
/* NULL is fine. */
void app_connection_free(struct app_connection *c);

#endif
