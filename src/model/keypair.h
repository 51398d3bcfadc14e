/* SPDX-License-Identifier: Apache-2.0 */
/* keypair.h - what a user's requests are signed with, and what its sessions may use */
#ifndef AQ_MODEL_KEYPAIR_H
#define AQ_MODEL_KEYPAIR_H

#include "base/uuid.h"
#include "model/entity.h"

#define ACCESS_KEY_MAX 21
#define SECRET_KEY_MAX 41

struct keypair {
    char access_key[ACCESS_KEY_MAX];
    char secret_key[SECRET_KEY_MAX]; /* clear text, in memory only; sealed in the store */
    struct uuid user_id;
    bool is_active, is_admin;
    char *policy;
    int rate_limit;       /* requests in 15 minutes; 0 = no limit */
    char *ssh_public_key; /* "ssh-ed25519 AAAA...", accepted by its sessions; NULL = none */
};

/* A decoded request: the members, and whose a new keypair is. */
struct keypair_request {
    struct keypair keypair;
    const char *user; /* e-mail address or id */
};

extern const struct field keypair_create[], keypair_change[];
extern const struct entity keypair_entity;

#endif
