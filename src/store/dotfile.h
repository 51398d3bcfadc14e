/* SPDX-License-Identifier: Apache-2.0 */
/* dotfile.h - files for the home directories of sessions, and bootstrap scripts
 *
 * Of keypairs, projects and domains; they go with their owner. For functions given to
 * store_write() and store_read().
 */
#ifndef AQ_STORE_DOTFILE_H
#define AQ_STORE_DOTFILE_H

#include "base/arena.h"
#include "model/dotfile.h"
#include "store/store.h"

enum dotfile_kind { DOTFILE_KEYPAIR, DOTFILE_PROJECT, DOTFILE_DOMAIN, DOTFILE_BOOTSTRAP };

#define DOTFILES_MAX 100         /* of an owner */
#define DOTFILES_BYTES_MAX 65536 /* of them together */

struct dotfile_owner {
    enum dotfile_kind kind;
    const char *name; /* access key, id or name */
};

/* Whether there may be any, of anybody: without one no session looks for its own. */
bool store_has_dotfiles(struct store *store);

/* By path; 'ret' in the arena, which may be read in any case. How many. */
int dotfile_list(struct store_tx *tx, const struct dotfile_owner *owner, struct arena *arena,
                 struct dotfile **ret, struct aq_error *err);

/* -EEXIST, -E2BIG; -EBUSY: store_check_domain(). */
int dotfile_create(struct store_tx *tx, const struct dotfile_owner *owner,
                   const struct dotfile *file, struct aq_error *err);
/* -ENOENT, -E2BIG. */
int dotfile_change(struct store_tx *tx, const struct dotfile_owner *owner,
                   const struct dotfile *file, struct aq_error *err);
/* -ENOENT. */
int dotfile_remove(struct store_tx *tx, const struct dotfile_owner *owner, const char *path,
                   struct aq_error *err);

/* The script of an access key; "" = none. */
int dotfile_set_script(struct store_tx *tx, const char *access_key, const char *script,
                       struct aq_error *err);

#endif
