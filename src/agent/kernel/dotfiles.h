/* SPDX-License-Identifier: Apache-2.0 */
/* dotfiles.h - the files that a kernel's owners want in its home directory */
#ifndef AQ_AGENT_KERNEL_DOTFILES_H
#define AQ_AGENT_KERNEL_DOTFILES_H

#include "base/error.h"

#define DOTFILES_FOLDER "dotfiles" /* in a kernel's config; the runner copies what is in it */

/* Write them below 'config'/dotfiles, each below a folder that is called as its permission is:
 * the runner, as the container's user, could not read them otherwise. 'dotfiles' is the JSON of
 * kernel_spec.dotfiles. -EINVAL, -ENOMEM, or the file system's.
 */
int dotfiles_store(const char *config, const char *dotfiles, struct aq_error *err);

#endif
