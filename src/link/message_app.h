/* SPDX-License-Identifier: Apache-2.0 */
/* message_app.h - messages about apps of sessions, to which a proxy leads browsers
 *
 * A proxy connects as an agent does, by an id that begins with LINK_PROXY_PREFIX. It sends app.*
 * alone, and an agent none of them. Its hello's 'addr' is the URL at which browsers reach it.
 * data.* go over a proxy's own connection to an agent, on which streams follow each other. See
 * message.h for the form of a message.
 */
#ifndef AQ_LINK_MESSAGE_APP_H
#define AQ_LINK_MESSAGE_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

#define LINK_PROXY_PREFIX "proxy:"

struct msg_app_redeem { /* a token that the manager made for a user: it is used up */
    struct uuid request_id;
    const char *token;
};

struct msg_app_redeemed { /* what the token stood for */
    struct uuid request_id, session_id;
    const char *app, *access_key;
};

/* Start the app if need be; its bytes come by a stream of kind "app". Of app.check: may this user
 * still connect?
 */
struct msg_app_connect {
    struct uuid request_id, session_id;
    const char *app, *access_key;
    bool direct;        /* app.connect: a ticket is wanted, if the app's agent takes them */
    bool watch;         /* app.check: request_id is a ticket's; say so if its right ends later */
    const char *ticket; /* with 'watch': itself, to get a newer one by app.route */
    struct uuid service_id; /* not nil: of a model service, whose replica the session is; 'app' is
                               MODEL_SERVICE_APP, the port that of its revision, and the right is
                               that the session is a replica of it */
};

/* How the proxy reaches the app itself (ticket.h). Also when its right has ended and while it is
 * watched, app.refused with the ticket's id says that.
 */
struct msg_app_route {
    struct uuid request_id, ticket_id;
    const char *ticket, *agent_id;
    const char *address; /* as in hello */
    int64_t expires_usec;
};

/* What went by a ticket since the last message; 'connections' are those that are open now. */
struct msg_app_use {
    struct uuid ticket_id, session_id;
    const char *app, *access_key;
    int64_t connections, requests, bytes_in, bytes_out;
    bool is_work;    /* of a person */
    int64_t traffic; /* bytes that may be: core_note_traffic() */
};

struct msg_data_open {
    const char *ticket;
};

struct msg_data_opened {
    int64_t port; /* of the app, as in the ticket */
};

struct msg_data_refused {
    const char *kind, *text;
};

struct msg_app_refused {
    struct uuid request_id;
    const char *kind, *text; /* "session-not-found", "app-failed" ... */
};

#endif
