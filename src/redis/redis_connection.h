/* SPDX-License-Identifier: Apache-2.0 */
/* redis_connection.h - one connection to a Redis server or a Sentinel; inside redis
 *
 * It greets, sends commands in their order, and matches replies to them.
 */
#ifndef AQ_REDIS_REDIS_CONNECTION_H
#define AQ_REDIS_REDIS_CONNECTION_H

#include <uv.h>

#include "http/tls.h"
#include "http/url.h"
#include "redis/redis_client.h"

struct redis_connection;

struct redis_connection_options {
    uv_loop_t *loop;
    const struct address *address;
    struct tls_context *tls;     /* NULL = plain */
    const char *user, *password; /* NULL = none; copied */
    bool is_sentinel;
    bool wants_master;            /* the server must be one: it was found by a Sentinel */
    unsigned db;                  /* the first of REDIS_DATABASES */
    void (*on_ready)(void *data); /* greeted */
    /* Once; the owner closes it, also from within. */
    void (*on_failed)(void *data, const struct aq_error *err);
    void *data;
};

/* 0 or -EINVAL; failures of the network come as on_failed(). */
int redis_connection_open(const struct redis_connection_options *options,
                          struct redis_connection **ret, struct aq_error *err);
/* Callbacks of commands without a reply come with NULL. NULL is fine. */
void redis_connection_close(struct redis_connection *connection);

/* As redis_client_send(), of a connection that is ready; it goes out with the next turn. */
void redis_connection_send(struct redis_connection *connection, unsigned db,
                           const struct redis_command *command, redis_reply_fn *fn, void *data);
void redis_connection_flush(struct redis_connection *connection);

/* Bytes of commands without a reply. */
size_t redis_connection_pending(const struct redis_connection *connection);

/* Fail if a command has waited for its reply for too long; called twice a second. */
void redis_connection_check(struct redis_connection *connection, int64_t now_usec);

#endif
