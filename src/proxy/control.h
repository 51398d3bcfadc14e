/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the proxy's own addresses from the inside: control.c answers them, setup.c lets
 * browsers in
 */
#ifndef AQ_PROXY_CONTROL_H
#define AQ_PROXY_CONTROL_H

#include "base/arena.h"
#include "http/url.h"
#include "proxy/browser.h"

struct control_query {
    struct arena arena;
    struct url_query pairs;
};

/* arena_done(&ret->arena), also after a failure. -EINVAL, -E2BIG. */
int control_read_query(const char *target, struct control_query *ret, struct aq_error *err);
/* Its session_id and app. -EINVAL. */
int control_read_place(const struct control_query *query, struct place *ret, struct aq_error *err);

/* Readable by a page of another origin, as the console's is. */
void control_reply_json(struct browser *b, int status, const struct strbuf *json);

/* ---- setup.c ---- */

/* Make a token a cookie, or let an address connect to a port, as the query says. */
void setup_serve(struct browser *b, const struct control_query *query);

#endif
