/* SPDX-License-Identifier: Apache-2.0 */
/* client_sync.h - the client for programs that wait: one private loop
 *
 * Starts without OpenSSL unless a URL is https.
 */
#ifndef AQ_HTTP_CLIENT_SYNC_H
#define AQ_HTTP_CLIENT_SYNC_H

#include "base/strbuf.h"
#include "http/client.h"

struct client_sync;

int client_sync_new(const struct client_options *options, struct client_sync **ret,
                    struct aq_error *err);
void client_sync_free(struct client_sync *cs);
AQ_DEFINE_CLEANUP(struct client_sync, client_sync_free)

struct client_reply {
    int status;
    char *content_type;    /* never NULL */
    struct strbuf headers; /* "Name: value\n" lines */
    struct strbuf body;
};

#define CLIENT_REPLY_INIT                           \
    {                                               \
        .headers = STRBUF_INIT, .body = STRBUF_INIT \
    }

void client_reply_done(struct client_reply *reply);

/* Nonzero stops. */
typedef int client_sync_body_fn(void *data, const char *bytes, size_t len);

/* The same with the body given to 'on_body' as it comes, if the status is
 * 2xx; any other body is collected. Returns 0, on_body's result, or -errno.
 */
int client_sync_stream(struct client_sync *cs, const struct client_request *request,
                       client_sync_body_fn *on_body, void *data, struct client_reply *ret,
                       struct aq_error *err);

/* For programs that do more than wait (terminals): the loop and client. */
uv_loop_t *client_sync_get_loop(struct client_sync *cs);
struct client *client_sync_get_client(struct client_sync *cs);

#endif
