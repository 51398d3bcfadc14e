/* paths.h - everything that has a place below the state folder, and the programs */
#ifndef AQ_UP_PATHS_H
#define AQ_UP_PATHS_H

#include "base/cleanup.h"
#include "base/error.h"

struct paths {
    char *state, *lock, *info, *log;
    char *manager_state, *manager_log, *manager_notify;
    char *credentials; /* what "aliquot-manager init" printed, mode 0600 */
    char *manager, *agent, *cli; /* programs */
};

/* Make the folders (0700) and find the programs beside this one. */
int paths_init(struct paths *paths, const char *state_dir, struct aq_error *err);
void paths_done(struct paths *paths);

#endif
