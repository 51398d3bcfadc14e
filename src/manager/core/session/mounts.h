/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.h - folders that a session mounts: found when it is made, looked at again when it starts
 */
#ifndef AQ_MANAGER_CORE_SESSION_MOUNTS_H
#define AQ_MANAGER_CORE_SESSION_MOUNTS_H

#include <stdbool.h>

#include "base/cleanup.h"

struct aq_error;
struct core;
struct folder_mounts;
struct session;
struct session_mounts;
struct store_tx;
struct mounts_draft;
struct mounts_owner;

/* What 's', whose owner and project are known, is to mount; *ret is NULL for nothing. -EINVAL. */
int mounts_draft_new(const struct core *core, const struct session *s,
                     const struct session_mounts *wanted, struct mounts_draft **ret,
                     struct aq_error *err) AQ_MUST_CHECK;
void mounts_draft_free(struct mounts_draft *draft);

/* On a thread of the store: find the folders. As folder_mounts_find(). */
int mounts_draft_read(struct store_tx *tx, struct mounts_draft *draft,
                      struct aq_error *err) AQ_MUST_CHECK;

/* Write them into the session's spec. -EPERM if a host is not the owner's to mount from, -EINVAL
 * with field "mounts" for targets that cannot be.
 */
int mounts_draft_take(struct mounts_draft *draft, struct session *s,
                      struct aq_error *err) AQ_MUST_CHECK;

/* The owner of a session as folders know it. free() is enough. */
struct mounts_owner *mounts_owner_new(const struct core *core, const struct session *s);

/* On a thread of the store, before the session starts: as folder_mounts_check_again(). */
int mounts_check_again(struct store_tx *tx, const struct mounts_owner *owner,
                       const struct folder_mounts *mounts, struct aq_error *err) AQ_MUST_CHECK;

#endif
