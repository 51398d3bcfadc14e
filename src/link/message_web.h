/* SPDX-License-Identifier: Apache-2.0 */
/* message_web.h - messages about people who have logged in with a browser
 *
 * A web server connects as an agent does, by an id that begins with LINK_WEB_PREFIX. It sends
 * web.ask alone. The answers contain secret keys. See message.h for the form of a message.
 */
#ifndef AQ_LINK_MESSAGE_WEB_H
#define AQ_LINK_MESSAGE_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

#define LINK_WEB_PREFIX "web:"

struct msg_web_ask {
    struct uuid request_id;
    const char *op;   /* "login", "find" ...: src/manager/login/web_logins.c */
    const char *args; /* JSON object */
};

struct msg_web_answer {
    struct uuid request_id;
    const char *result;     /* JSON object; NULL = it failed: */
    const char *error_kind; /* slug of a problem document */
    const char *error_text;
    int64_t retry_sec; /* when to ask again; 0 = it says nothing */
};

/* A header of the API's answer to who has ended, by the request, the login that it may have come
 * with: a web server hears of that end as of all others, perhaps before the answer.
 */
#define WEB_ENDED_HEADER "X-Aliquot-Login-Ended"

/* These logins let nobody in any more. One of the three is set. */
struct msg_web_ended {
    struct uuid login_id, user_id; /* of one; of all of a user */
    const char *access_key;        /* of all with this key */
};

#endif
