/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - where the manager's database is */
#ifndef AQ_MANAGER_BACKUP_PLACE_H
#define AQ_MANAGER_BACKUP_PLACE_H

#include "base/error.h"

struct place {
    char *file, *key;  /* in the state folder */
    const char *where; /* 'file', or the URI of a server, which is borrowed */
};

/* 'database' is the URI, NULL = a file. */
int place_find(const char *state_dir, const char *database, struct place *ret,
               struct aq_error *err);
void place_done(struct place *place);

#endif
