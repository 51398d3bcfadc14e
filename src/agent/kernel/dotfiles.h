/* SPDX-License-Identifier: Apache-2.0 */
/* dotfiles.h - the files that a kernel's owners want in its home directory */
#ifndef AQ_AGENT_KERNEL_DOTFILES_H
#define AQ_AGENT_KERNEL_DOTFILES_H

#include <sys/types.h>

#include "base/error.h"

#define DOTFILES_FOLDER "dotfiles" /* in a kernel's config; the runner copies what is in it */

/* Write them below 'config'/dotfiles, each below a folder that is called as its permission is:
 * the runner, as the container's user, could not read them otherwise. 'dotfiles' is the JSON of
 * kernel_spec.dotfiles. -EINVAL, or the file system's.
 */
int dotfiles_store(const char *config, const char *dotfiles, struct aq_error *err);

struct dotfiles_owner {
    uid_t uid;
    gid_t gid;
};

/* Write them into the home directory of a process, for a user (NULL = this one's). It may have
 * run before and left links there: none is followed.
 */
int dotfiles_place(const char *home, const char *dotfiles, const struct dotfiles_owner *owner,
                   struct aq_error *err);

#endif
