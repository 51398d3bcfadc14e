/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.h - a TCP connection to a port in a container of a session, through the manager
 *
 * The client's side of manager/stream/tunnel_rest.c. Either side ends what it sends on its own.
 * Loop's thread only; callbacks never come from within a call.
 */
#ifndef AQ_CLI_TUNNEL_TUNNEL_H
#define AQ_CLI_TUNNEL_TUNNEL_H

#include "cli/session/session.h"
#include "http/client.h"

#define TUNNEL_QUEUE_HIGH (256 * 1024) /* bytes that wait before the other side is held back */

struct tunnel;

struct tunnel_ops {
    void (*on_open)(void *data); /* bytes can be sent, though nobody may listen there */
    void (*on_bytes)(void *data, const char *bytes, size_t len);
    void (*on_end)(void *data); /* nothing more comes; sending goes on */
    void (*on_drain)(void *data);
    /* Once, and last; the tunnel is gone. Code 0: the program has closed. ECONNREFUSED: nobody
     * listens there; ENOENT: the session has ended or may not be reached any more; ECONNABORTED:
     * it was ended meanwhile; others as the network has them.
     */
    void (*on_close)(void *data, const struct aq_error *err);
};

/* In the session's kernel of that name. 'app' is started if it does not run; NULL = the port alone.
 */
int tunnel_open(struct cli *cli, const struct follow_session *session, const char *app,
                uint16_t port, const struct tunnel_ops *ops, void *data, struct tunnel **ret,
                struct aq_error *err);

/* After on_open(). 0; 1 = enough until on_drain(); -errno: on_close() follows, or has to be made
 * by tunnel_free().
 */
int tunnel_send(struct tunnel *tunnel, const char *bytes, size_t len);

/* After on_open(): nothing more will be sent. */
void tunnel_end(struct tunnel *tunnel);

void tunnel_pause(struct tunnel *tunnel, bool paused);

/* Break off; on_close() is not called. NULL is fine. */
void tunnel_free(struct tunnel *tunnel);

/* "8080" as a port; -EINVAL, of kind usage. 0 only with 'may_be_zero'. */
int tunnel_parse_port(const char *text, bool may_be_zero, uint16_t *ret, struct aq_error *err);

/* A tunnel between standard input and output. 0 when the program has closed. */
int tunnel_run_stdio(struct cli *cli, const struct follow_session *session, uint16_t port,
                     struct aq_error *err);

#endif
