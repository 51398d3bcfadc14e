/* SPDX-License-Identifier: Apache-2.0 */
/* dotfile.h - files that are put into the home directory of a session's containers
 *
 * Pure.
 */
#ifndef AQ_MODEL_DOTFILE_H
#define AQ_MODEL_DOTFILE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"

#define DOTFILE_PATH_MAX 255 /* bytes */

struct dotfile {
    const char *path;       /* below the home directory */
    const char *permission; /* "644" */
    const char *data;       /* UTF-8 */
};

/* Below the home directory, with no "..", and without control characters? */
bool dotfile_path_is_valid(const char *path);
/* Three octal digits? */
bool dotfile_permission_is_valid(const char *permission);

/* As a list of JSON; of several of one path the last counts. */
void dotfiles_write(const struct dotfile *files, size_t count, struct jsonw *w);

/* That list; in the arena. How many, -EINVAL for what is no dotfile. */
int dotfiles_parse(const char *text, struct arena *arena, struct dotfile **ret,
                   struct aq_error *err) AQ_UNTRUSTED;

#endif
