/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - the certificates of who connects to a manager, and joining with a token
 *
 * In the state directory, of "agent" or "proxy": NAME.key (0600, made here, never sent), NAME.crt,
 * ca.crt, and manager, the address that was joined ("host:port").
 */
#ifndef AQ_LINK_IDENTITY_H
#define AQ_LINK_IDENTITY_H

#include "base/cleanup.h"
#include "base/error.h"
#include "conf/conf.h"

/* Where it is kept and whose it is; borrowed for the call. */
struct link_identity_place {
    const char *folder; /* the state directory */
    const char *name;   /* of the files */
    const char *id;     /* of the certificate: msg_hello.agent_id */
};

struct link_identity {
    char *id;
    char *key, *cert, *ca; /* PEM */
    struct conf_listen manager;
};

/* Join the cluster whose manager is at 'url' ("host[:port]", perhaps with a scheme); an identity
 * that is there already is replaced. 'machine' tells its name and architecture, too. Blocks.
 */
int link_identity_join(const struct link_identity_place *place, const char *url, const char *token,
                       bool machine, struct aq_error *err);

/* -ENOENT before joining. 'manager', unless its host is NULL, goes before the one that was joined.
 */
int link_identity_load(const struct link_identity_place *place, const struct conf_listen *manager,
                       struct link_identity *ret, struct aq_error *err);
void link_identity_done(struct link_identity *identity);

#endif
