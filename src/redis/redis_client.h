/* SPDX-License-Identifier: Apache-2.0 */
/* redis_client.h - one Redis server that may be away, be emptied or be replaced at any time
 *
 * The client connects, by Sentinels where the URI names some, and connects again after a failure: at
 * first after 250 ms, then at longer intervals of up to 10 s. Commands wait in a queue of up to 4 MiB;
 * past that the oldest are dropped and counted. A server that does not answer within 5 s has failed.
 * Commands that were sent to it are not sent again: they may have been executed.
 *
 * Belongs to one loop and is used on its thread. Callbacks never come from within a call, but for those
 * that say that a command was dropped.
 */
#ifndef AQ_REDIS_REDIS_CLIENT_H
#define AQ_REDIS_REDIS_CLIENT_H

#include <uv.h>

#include "base/error.h"
#include "base/host_port.h"
#include "base/strbuf.h"
#include "redis/redis_reply.h"

/* [redis] of manager.toml; members may be NULL. */
struct redis_settings {
    char *uri;                    /* without it there is no server */
    char *password_file;          /* of the server, instead of the one in the URI */
    char *sentinel_password_file; /* of the Sentinels */
    char *ca;                     /* PEM file; NULL = the system's */
};

/* Databases after the one of the URI, which commands name by their number from there. */
#define REDIS_DATABASES 5

struct redis_client;

struct redis_client_options {
    uv_loop_t *loop;
    const struct redis_settings *settings; /* borrowed */
    /* The server is another one, or was emptied, or commands may have been lost. Commands may be sent
     * from within. May be NULL.
     */
    void (*on_fresh)(void *data);
    void *data;
    /* Key whose value tells this client that the server still has what was written; looked at each
     * second, in database number 'mark_db'. NULL = it is not looked at.
     */
    const char *mark;
    unsigned mark_db;
    bool is_quiet; /* log nothing */
};

/* -EINVAL with the setting as field; -errno of files. The server need not be there. */
int redis_client_new(const struct redis_client_options *options, struct redis_client **ret,
                     struct aq_error *err);
/* Hands what waits to the system as far as it takes it. Callbacks of commands come once more, with
 * NULL. NULL is fine.
 */
void redis_client_free(struct redis_client *client);

/* ---- commands ---- */

struct redis_command {
    struct strbuf bytes;
    unsigned count; /* of words */
};
#define REDIS_COMMAND_INIT   \
    {                        \
        .bytes = STRBUF_INIT \
    }

void redis_command_add(struct redis_command *command, const void *bytes, size_t len);
void redis_command_adds(struct redis_command *command, const char *text);
void redis_command_addf(struct redis_command *command, const char *fmt, ...) AQ_PRINTF(2, 3);

/* NULL: it was dropped, or the connection was lost before its reply. The reply lives until the
 * callback returns.
 */
typedef void redis_reply_fn(void *data, const struct redis_reply *reply);

/* Send it to database 'db', 0 to REDIS_DATABASES - 1, and empty it. 'fn' may be NULL. */
void redis_client_send(struct redis_client *client, unsigned db, struct redis_command *command,
                       redis_reply_fn *fn, void *data);

/* ---- how it is ---- */

struct redis_status {
    bool is_ready;     /* connected, and the last mark was accepted; without a mark: connected */
    int64_t away_usec; /* wall clock: since when it is not ready; 0 = it is */
    char problem[320]; /* why it is not; "" = it is, or was not reached yet */
    char server[HOST_PORT_MAX]; /* in use or tried last; "" = none yet */
    uint64_t sent, dropped, refused, connects;
    uint64_t failures; /* how often no address led to a server */
    size_t queued;     /* commands that wait, also those without an answer */
};
void redis_client_get_status(const struct redis_client *client, struct redis_status *ret);

/* Connect, write a mark that expires, and wait for it up to 'msec', with a loop of its own; for "aliquot
 * doctor". 0, or as redis_client_new(), or -EIO with the problem.
 */
int redis_client_try(const struct redis_settings *settings, unsigned msec, struct aq_error *err);

/* Let the loop end when its handles are closed, and free it: in a thread of its own if a name is still
 * being looked up, which cannot be interrupted.
 */
void redis_loop_finish(uv_loop_t *loop);

#endif
