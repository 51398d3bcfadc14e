/* SPDX-License-Identifier: Apache-2.0 */
/* backup.h - all that is durable of a cluster, as one file under a passphrase
 *
 * The database (as a file of SQLite, whatever it is on), the key of its secrets,
 * the certificate authority and manager.toml: what a manager needs to go on
 * elsewhere, on either engine.
 */
#ifndef AQ_MANAGER_BACKUP_BACKUP_H
#define AQ_MANAGER_BACKUP_BACKUP_H

#include "base/error.h"

struct backup_options {
    const char *state_dir;       /* of the manager */
    const char *database;        /* URI; NULL = the file in the state folder */
    const char *path;            /* the file, or a folder; see below */
    const char *passphrase_file; /* NULL = ask on the terminal */
    const char *settings;        /* manager.toml; NULL = none */
    int keep;                    /* of the backups in the folder the newest; 0 = all */
};

/* Write one while the manager serves. In a folder it is called
 * aliquot-YYYYMMDD-HHMMSS.backup (UTC), and older ones than the newest 'keep' are
 * removed then, as is what a killed backup has left there. Its name appears when it is whole and on
 * disk.
 */
int backup_create(const struct backup_options *o, struct aq_error *err);

/* Read all of it and audit what is inside. */
int backup_verify(const struct backup_options *o, struct aq_error *err);

/* Put it where the options say, where no cluster is yet: -EEXIST. */
int backup_restore(const struct backup_options *o, struct aq_error *err);

/* Print name, size and time of those in the folder. */
int backup_list(const struct backup_options *o, struct aq_error *err);

#endif
