/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - what an argument of 'folder cp' and 'folder sync' names: a path here, or in a folder */
#ifndef AQ_CLI_FOLDER_PLACE_H
#define AQ_CLI_FOLDER_PLACE_H

#include <limits.h>

#include "cli/folder/copy_transfer.h"

#define PLACE_FOLDER_MAX 80

struct place {
    char folder[PLACE_FOLDER_MAX]; /* "" = of this machine */
    const char *word;              /* as it was given */
    char path[PATH_MAX];           /* in the folder, clean; "" = all of it */
    bool is_into; /* it ends with '/', or is a whole folder: what it is copied into */
};

/* "FOLDER:[PATH]", or a path of this machine. Kind usage for what is neither. */
int place_read(const char *word, struct place *ret, struct aq_error *err);

/* Links are followed only here. -EINVAL, kind usage. */
int place_check_links(const struct place *to, bool follows_links, struct aq_error *err);

/* The two parts of a clean path: what it is in, and its last name. 'above' has PATH_MAX bytes. */
const char *place_split(const char *path, char *above);

/* What was copied, in the format that was asked for. Returns the exit status or -errno. */
int place_report(struct cli *cli, const struct copy_transfer *t, size_t unchanged, size_t removed,
                 size_t skipped, int64_t took_usec, struct aq_error *err);

#endif
