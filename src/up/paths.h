/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - everything that has a place below the state directory, and the programs */
#ifndef AQ_UP_PATHS_H
#define AQ_UP_PATHS_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"

struct paths {
    char *state, *lock, *info, *log;
    char *manager_state, *manager_log, *manager_notify;
    char *credentials; /* what "aliquot-manager init" printed, mode 0600 */
    char *manager, *agent, *proxy, *storage, *web, *cli; /* programs */
};

struct paths_wanted {
    bool proxy, storage, web;
};

/* Name everything, and find the programs beside this one; of some, only what is wanted. */
int paths_init(struct paths *paths, const char *state_dir, const struct paths_wanted *wanted,
               struct aq_error *err);
/* -ENOSPC or -EROFS if a cluster is to be made where it does not fit. To be checked before anything
 * is written: a cluster that is half made may lack its administrator.
 */
int paths_check_room(const struct paths *paths, struct aq_error *err);
/* Make the state directory and the manager's in it (0700). */
int paths_make_folders(const struct paths *paths, struct aq_error *err);
void paths_done(struct paths *paths);

#endif
