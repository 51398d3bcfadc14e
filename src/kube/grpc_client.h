/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_client.h - one unary gRPC call over a Unix socket, on a connection of its own
 *
 * Belongs to one loop and its thread.
 */
#ifndef AQ_KUBE_GRPC_CLIENT_H
#define AQ_KUBE_GRPC_CLIENT_H

#include <uv.h>

#include "kube/grpc_message.h"
#include "kube/grpc_status.h"

struct grpc_request;

/* 'answer' is borrowed for the call; NULL if there is none, 'err' says why: -EREMOTEIO if the peer
 * refused, with its status and text; -ETIMEDOUT; -EPROTO and -EMSGSIZE for what it may not send;
 * errors of connecting and reading.
 */
typedef void grpc_done_fn(void *data, const ProtobufCMessage *answer, const struct aq_error *err);

struct grpc_request_conf {
    const char *socket; /* its path */
    const char *method; /* "/v1beta1.Registration/Register" */
    const ProtobufCMessage *message;
    const ProtobufCMessageDescriptor *answer;
    unsigned msec; /* until the whole answer is there */
    grpc_done_fn *on_done;
    void *data;
};

/* Ask. Everything is copied. on_done() is called once, never from within this call; the request is
 * gone then. -EINVAL for a path that is too long.
 */
int grpc_request_send(uv_loop_t *loop, const struct grpc_request_conf *conf,
                      struct grpc_request **ret, struct aq_error *err);
/* on_done() will not be called. NULL is fine. */
void grpc_request_cancel(struct grpc_request *request);

#endif
