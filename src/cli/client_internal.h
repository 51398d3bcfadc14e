/* SPDX-License-Identifier: Apache-2.0 */
/* client_internal.h - what client.c and client_call.c share */
#ifndef AQ_CLI_CLIENT_INTERNAL_H
#define AQ_CLI_CLIENT_INTERNAL_H

#include "cli/client.h"
#include "cli/endpoints.h"
#include "http/defer.h"

struct cli_client {
    struct client_sync *sync;
    struct endpoints endpoints;
    const char *once;       /* Idempotency-Key of the requests that are made; NULL = none */
    struct defer *breaking; /* what is still asked of 'broken' */
    struct address broken;
    bool was_sent;    /* the last request to the endpoint in use: it may have come through */
    bool is_in_doubt; /* nothing has told what became of the last request that was sent */
    bool was_stale;   /* and was told so */
};

/* Make the client unless it is there. */
int client_need(struct cli *cli, struct aq_error *err);

/* Write URL and headers of a request to the endpoint in use. 'content_type' NULL: no such header, as
 * for WebSockets and event streams.
 */
int client_prepare(struct cli *cli, enum method method, const char *path, const char *content_type,
                   struct strbuf *url, struct strbuf *headers, struct aq_error *err);

/* Is it an error of a connection that is not made, or that ends? */
bool client_is_lost(int r);

/* Does what is in front of the manager answer in place of it? */
bool client_is_gateway_status(int status);

#endif
