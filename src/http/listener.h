/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - a listening socket that hands out streams */
#ifndef AQ_HTTP_LISTENER_H
#define AQ_HTTP_LISTENER_H

#include "http/stream.h"

struct listener;

struct listener_options {
    const char *address;     /* as for address_parse(); port 0 = any free one */
    struct tls_context *tls; /* NULL = plain; a reference is taken */
    bool insecure;           /* allow plain text on an address that is not local */
    unsigned mode;           /* of a Unix socket; 0 = 0600 */
};

/* A connection is waiting: take it with listener_accept(), or say listener_wait(). */
typedef void listener_waiting_fn(struct listener *listener, void *data);

/* Listen. A stale Unix socket nobody listens on is replaced. -EINVAL for a bad
 * address, -EPERM for plain text that would need 'insecure', -errno of
 * bind(2) and listen(2).
 */
int listener_new(uv_loop_t *loop, const struct listener_options *options,
                 listener_waiting_fn *on_waiting, void *data, struct listener **ret,
                 struct aq_error *err);

/* Take the waiting connection; see stream_accept(). After -ENOMEM it waits. */
int listener_accept(struct listener *listener, const struct stream_ops *ops, void *data,
                    struct stream **ret, struct aq_error *err);

/* The connection waits, and is told of again soon. */
void listener_wait(struct listener *listener);

/* The TCP port in use, 0 for a Unix socket. */
uint16_t listener_get_port(const struct listener *listener);

/* Stop listening and free. A Unix socket's file is removed, if it is still this one. NULL is fine.
 */
void listener_close(struct listener *listener);

#endif
