/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - by what a manager proves to another one that it is of the same cluster: a client
 * certificate of the authority, whose key each manager has
 */
#ifndef AQ_MANAGER_MANAGER_IDENTITY_H
#define AQ_MANAGER_MANAGER_IDENTITY_H

#include "http/tls.h"
#include "link/pki.h"

struct manager_identity {
    struct pki_ca *ca;       /* of this thread; the leader's core has one of its own */
    char *id;                /* "manager:NAME" */
    char *cert, *key;        /* PEM; made anew at each start, never on disk */
    struct tls_context *tls; /* shows it; for requests that are passed on */
};

/* The authority in "STATE/ca" is made if there is none. Errors as of pki_ca_open(). */
int manager_identity_open(const char *state_dir, const char *name, struct manager_identity *ret,
                          struct aq_error *err);
void manager_identity_done(struct manager_identity *identity);

#define LINK_NAMES_MAX 64

/* The names of the link's own certificate: 'text' is the setting, names with commas between. */
struct link_names {
    char *text;
    const char *list[LINK_NAMES_MAX];
    size_t count;
};
void link_names_split(const char *text, struct link_names *ret);
void link_names_done(struct link_names *names);

#endif
