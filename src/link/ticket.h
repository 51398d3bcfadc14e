/* SPDX-License-Identifier: Apache-2.0 */
/* ticket.h - the right of one proxy to connect to one port of one kernel
 *
 * The manager signs it with the key of the cluster's authority; an agent checks it with the
 * authority's certificate, which it has since it joined. So a ticket is good after a restart of
 * any of the three, until it expires, and an agent needs no manager to check one.
 *
 * It is a text of lines, the last of which is the signature (ECDSA, SHA-256) of all before it.
 * The first line keeps it apart from everything else that this key signs.
 */
#ifndef AQ_LINK_TICKET_H
#define AQ_LINK_TICKET_H

#include "base/strbuf.h"
#include "base/uuid.h"
#include "link/pki.h"
#include "model/agent.h"
#include "model/service_port.h"

#define TICKET_MAX 1024   /* bytes of the text; longer ones are refused */
#define TICKET_KEY_MAX 64 /* of an access key, with NUL */

struct ticket {
    struct uuid id;         /* what is said of the right later names it by this */
    struct uuid session_id; /* as proxies call it: msg_app_connect.session_id */
    struct uuid kernel_id;
    char proxy[AGENT_ID_MAX + 1]; /* the only one that may use it: "proxy:NAME" */
    char agent[AGENT_ID_MAX + 1]; /* the only one that may take it */
    char app[SERVICE_NAME_MAX + 1];
    char access_key[TICKET_KEY_MAX]; /* of the user */
    uint16_t port;                   /* of 127.0.0.1 in the kernel's network */
    int64_t expires_usec;            /* wall clock */
};

/* Append the text. -EINVAL for an id or name that is empty, too long, or has a control character. */
int ticket_write(const struct pki_ca *ca, const struct ticket *ticket, struct strbuf *out,
                 struct aq_error *err);

/* The authority's public key, of its certificate (PEM). */
struct ticket_key;
int ticket_key_new(const char *ca_cert, struct ticket_key **ret, struct aq_error *err);
void ticket_key_free(struct ticket_key *key); /* NULL is fine */

/* What a ticket says. -EINVAL for a text that is none, -EACCES if the signature is wrong, -ETIME
 * if it has expired at 'now_usec'; err->text says which.
 */
int ticket_read(const struct ticket_key *key, const char *text, size_t len, int64_t now_usec,
                struct ticket *ret, struct aq_error *err) AQ_UNTRUSTED;

/* The name of the socket at which an agent takes tickets on its own machine: one for each agent of
 * each cluster, of SOCKET_NAME_MAX bytes with NUL.
 */
#define TICKET_SOCKET_NAME_MAX 24
char *ticket_socket_name(const char *ca_cert, const char *agent_id,
                         char buf[TICKET_SOCKET_NAME_MAX]);

#endif
