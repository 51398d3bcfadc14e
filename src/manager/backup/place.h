/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - where the manager's database is */
#ifndef AQ_MANAGER_BACKUP_PLACE_H
#define AQ_MANAGER_BACKUP_PLACE_H

struct place {
    char *file, *key;  /* in the state folder */
    const char *where; /* 'file', or the URI of a server, which is borrowed */
};

/* 'database' is the URI, NULL = a file. To be released by place_done(). */
struct place place_find(const char *state_dir, const char *database);
void place_done(struct place *place);

#endif
