/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h - who calls, and what they may do
 *
 * The guard runs before every handler: it checks the signature, the role that
 * the route asks for and the rate limit, and leaves the caller as a struct
 * principal with the request. Everything here runs on the loop's thread.
 */
#ifndef AQ_MANAGER_CALL_CALLER_H
#define AQ_MANAGER_CALL_CALLER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/uuid.h"
#include "http/router.h"
#include "http/server.h"
#include "http/version.h"
#include "model/accounts.h"
#include "model/audit.h"

struct api;
struct repeat;

/* The role column of a route: the least that a caller must be. */
enum api_role {
    API_PUBLIC, /* anyone, also without a signature */
    API_USER,   /* an active keypair of an active user */
    API_ADMIN,  /* a domain's administrator, for that domain, or a superadmin */
    API_SUPERADMIN,
};
#define API_ROLE_MASK 0xf
/* or'ed to the role */
#define API_FREEZABLE 0x10     /* refused while the manager is frozen */
#define API_ANSWERED_ONCE 0x20 /* what is sent again gets the first answer: repeat.h */

const char *api_role_name(enum api_role role); /* "public" ... */

/* Who calls; of a public route nobody: access_key "". */
struct principal {
    char access_key[ACCESS_KEY_MAX];
    struct uuid user_id;
    enum user_role role;
    const char *domain;
    struct api_version version;
    struct repeat *repeat; /* of API_ANSWERED_ONCE: how it is known again; else NULL */
    struct audit_who by;   /* of api_who(), once it was asked */
};

const struct principal *api_principal(const struct request *req);
/* For a request that has waited: -EBUSY "conflict" unless its caller still has the key, the role and
 * the domain of then. Another domain may have the name by now. -EPIPE if the client has gone.
 */
int api_check_caller(const struct api *api, const struct request *req, struct aq_error *err);
/* Who asks, for the audit log; borrowed until the request ends. The answer says by what id the
 * log has the request: the client's X-Request-ID, or one that is made.
 */
const struct audit_who *api_who(const struct api *api, struct request *req);
/* The caller may not do that: in the audit log, however often, as one entry a minute. */
void api_note_denied(const struct api *api, struct request *req, const char *kind,
                     const char *what);
bool principal_is_superadmin(const struct principal *who);
/* Whether it may see, as an administrator, what belongs to this domain (NULL = none). */
bool principal_sees_domain(const struct principal *who, const char *domain);
bool principal_may(enum user_role have, enum api_role need);
/* Is this one of the keypairs of --dev, which everybody knows, and was --dev not
 * given? Nobody is let in by it then.
 */
bool keypair_is_published(const struct api *api, const struct keypair *key);
/* Clients below v9 know the session states of 22.03 only. */
bool principal_is_old(const struct principal *who);

/* Whether an administrator may act with the rights of that user, whom it sees: one of a domain only for
 * its users, and never for a superadmin. -EPERM (generic-forbidden).
 */
int api_check_acts_for(const struct request *req, const struct user *user, struct aq_error *err);

/* The keypair on whose behalf a request is made: 'owner_access_key', for
 * administrators, or the caller's own if NULL. -EPERM (generic-forbidden),
 * -EINVAL for a key that does not exist.
 */
int api_owner(const struct api *api, const struct request *req, const char *owner_access_key,
              const struct keypair **ret, struct aq_error *err);

/* The project that a caller names, by id or by a name of the own domain: one of the caller's,
 * an administrator's of the domain, any of a superadmin's. Borrowed. -ENOENT.
 */
int api_find_project(const struct api *api, const struct request *req, const char *text,
                     const struct project **ret, struct aq_error *err);

/* The guard of the HTTP server, for server_options; 'data' is the struct api.
 * 0 with the request's data set to its struct principal, or why it is refused.
 */
int api_guard(struct request *req, const struct route *route, void *data, struct aq_error *err);
/* Its recheck: api_check_caller(). */
int api_guard_again(struct request *req, const struct route *route, void *data,
                    struct aq_error *err);

/* Whose places connections of the HTTP server take, for server_options: a trusted proxy's and
 * those of the machine's own sockets are not counted. 'data' is the struct api.
 */
bool api_name_peer(const char *address, char ret[SERVER_PEER_MAX], void *data);

#endif
