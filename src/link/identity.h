/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - the certificates of who connects to a manager, and joining with a token
 *
 * In the state directory, of "agent" or "proxy": NAME.key (0600, made here, never sent), NAME.crt,
 * ca.crt, and manager, the address that was joined ("host:port"). Kept later: managers, all managers
 * of the cluster as the leader named them last (a message of the link, as JSON); epoch, the highest
 * epoch that was followed.
 */
#ifndef AQ_LINK_IDENTITY_H
#define AQ_LINK_IDENTITY_H

#include "base/cleanup.h"
#include "base/error.h"
#include "conf/conf.h"
#include "link/message.h"

/* Where it is kept and whose it is; borrowed for the call. */
struct link_identity_place {
    const char *folder; /* the state directory */
    const char *name;   /* of the files */
    const char *id;     /* of the certificate: msg_hello.agent_id */
};

struct link_identity {
    char *id;
    char *key, *cert, *ca;      /* PEM */
    struct conf_list addresses; /* "host:port" of managers, one at least */
    bool is_fixed;              /* they are set, not joined */
    struct conf_listen manager; /* the first of them */
    int64_t epoch;              /* the highest that was followed; 0 = none */
};

/* Join the cluster whose manager is at 'url' ("host[:port]", perhaps with a scheme); an identity
 * that is there already is replaced. 'machine' tells its name and architecture, too. Blocks.
 */
int link_identity_join(const struct link_identity_place *place, const char *url, const char *token,
                       bool machine, struct aq_error *err);

/* -ENOENT before joining. 'managers', unless it is empty, are taken in place of those that were joined
 * and named.
 */
int link_identity_load(const struct link_identity_place *place, const struct conf_list *managers,
                       struct link_identity *ret, struct aq_error *err);
void link_identity_done(struct link_identity *identity);

/* Durable when it returns 0. */
int link_identity_keep_epoch(const struct link_identity_place *place, int64_t epoch,
                             struct aq_error *err);
int link_identity_keep_managers(const struct link_identity_place *place,
                                const struct link_manager *list, size_t count,
                                struct aq_error *err);

/* Are these of the setting 'field' addresses like "host[:port]"? -EINVAL. */
int link_identity_check_addresses(const char *field, const struct conf_list *managers,
                                  struct aq_error *err);

#endif
