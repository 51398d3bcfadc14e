/* SPDX-License-Identifier: Apache-2.0 */
/* rights.h - whether the user for whom a token was made still has the right to the folder
 *
 * A token is valid for an hour, an upload for days; the user's right may end before. The manager
 * decides: it is asked before a transfer begins, unless it confirmed the right a moment ago, and
 * several times a second while one runs. A transfer whose right has ended is cut within a second.
 * While the manager cannot be reached, a right counts for RIGHTS_GRACE_SEC after it was last
 * confirmed; after a restart of the storage host, nothing is confirmed yet. Nothing is stored.
 * Loop's thread.
 */
#ifndef AQ_STORAGE_RIGHTS_H
#define AQ_STORAGE_RIGHTS_H

#include "base/list.h"
#include "storage/token.h"

#define RIGHTS_GRACE_SEC 60

struct storage;
struct rights;
struct right;
struct msg_storage_checked;

struct rights *rights_new(struct storage *storage);
/* No use may be left. NULL is fine. */
void rights_free(struct rights *rights);

/* The connection to the manager is there. */
void rights_on_connected(struct rights *rights);
/* The connection was lost: what was asked will not be answered. */
void rights_on_disconnected(struct rights *rights);
void rights_on_checked(struct rights *rights, const struct msg_storage_checked *msg);

/* A transfer that a right is needed for; part of the transfer's own structure. */
struct right_use {
    struct list link;
    struct right *right; /* NULL = it needs none, or the use is over */
    bool is_waiting;     /* for the manager's answer */
    int64_t since_usec;  /* monotonic */
    /* The transfer may begin. */
    void (*on_ready)(struct right_use *use);
    /* It may not: -EACCES, or -EAGAIN where the manager did not answer. The use is over. */
    void (*on_refused)(struct right_use *use, const struct aq_error *err);
    /* The right has ended since on_ready(). The use is over. */
    void (*on_cut)(struct right_use *use);
};

/* Begin a use: on_ready() or on_refused() follows once, perhaps from within this call. A token
 * without a user, made by an earlier release, is valid until it expires.
 */
void right_use_begin(struct rights *rights, const struct token *token, struct right_use *use);
/* End a use; one that never began, all zeroes, is fine. */
void right_use_end(struct right_use *use);

#endif
