/* SPDX-License-Identifier: Apache-2.0 */
/* loopback.h - talk to a server without a socket, for tests and fuzzing */
#ifndef AQ_HTTP_LOOPBACK_H
#define AQ_HTTP_LOOPBACK_H

#include "http/server.h"

struct loopback;

/* A connection to 'server' in memory. */
struct loopback *loopback_new(struct server *server);

/* Let the server read bytes. */
void loopback_send(struct loopback *lb, const void *bytes, size_t len);

/* Run the loop until the server has done what waits for a turn: requests behind an answer that
 * was given late, bodies that a handler asked for.
 */
void loopback_settle(struct loopback *lb);

/* Close the client's side. */
void loopback_hang_up(struct loopback *lb);

/* Everything the server has sent. */
struct strbuf *loopback_get_output(struct loopback *lb);

/* Has the server closed the connection? */
bool loopback_is_closed(const struct loopback *lb);

/* Hang up and free. */
void loopback_free(struct loopback *lb);

#endif
