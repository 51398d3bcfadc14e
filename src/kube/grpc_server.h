/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_server.h - a gRPC server on a Unix socket: unary calls and streams of answers
 *
 * Belongs to one loop and its thread. Each call has one request, decoded before its handler is
 * called. A handler answers at once or later; a call that waits is told when its client is gone.
 * Messages of a stream are states, not events: one that has not begun to be sent when the next
 * is there gives way to it, so a client that reads slowly costs two messages and gets the newest.
 * Deadlines are the client's to keep: it resets the stream when one has passed.
 */
#ifndef AQ_KUBE_GRPC_SERVER_H
#define AQ_KUBE_GRPC_SERVER_H

#include <uv.h>

#include "kube/grpc_message.h"
#include "kube/grpc_status.h"

#define GRPC_CONNECTIONS_MAX 16 /* of a server; further ones are closed */
#define GRPC_CALLS_MAX 32       /* of a connection at a time; further ones are refused */

struct grpc_server;
struct grpc_call;

struct grpc_method {
    const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
    const ProtobufCMessageDescriptor *request;
    /* Answers with grpc_call_reply() or grpc_call_fail(), or keeps the call and, for a stream, says
     * grpc_call_send(). 'request' is borrowed. It may not free the server.
     */
    void (*handle)(void *data, struct grpc_call *call, const ProtobufCMessage *request);
};

struct grpc_server_conf {
    uv_loop_t *loop;
    const char *path;                  /* of the socket, 0600; a stale one is replaced */
    const struct grpc_method *methods; /* until one without path; borrowed */
    void *data;                        /* of the handlers */
};

/* -EINVAL for a path that is too long, -errno of bind(2) and listen(2). */
int grpc_server_new(const struct grpc_server_conf *conf, struct grpc_server **ret,
                    struct aq_error *err);
/* Calls that wait are told that their client is gone. The socket's file is removed. NULL is fine.
 */
void grpc_server_free(struct grpc_server *server);

/* The client of a call that waits is gone, and the call with it. */
void grpc_call_on_gone(struct grpc_call *call, void (*on_gone)(void *data), void *data);

/* The next message of a stream. */
void grpc_call_send(struct grpc_call *call, const ProtobufCMessage *message);

/* The answer, or why there is none. The call is not the handler's any more. */
void grpc_call_reply(struct grpc_call *call, const ProtobufCMessage *message);
void grpc_call_fail(struct grpc_call *call, enum grpc_status status, const char *text);

#endif
