/* SPDX-License-Identifier: Apache-2.0 */
/* joined_state.h - the state folder of a manager that joined a cluster
 *
 * It has the cluster's authority (ca/ca.key, ca/ca.crt), the sealing key of the database
 * (aliquot.db.key), the URI of the database (database) and the manager's name (name), each 0600.
 * They appear together: all are written to a folder of their own, which is renamed once it is on
 * disk, and whose files are then moved to their places, at the next start if this one is killed.
 */
#ifndef AQ_MANAGER_JOINED_STATE_H
#define AQ_MANAGER_JOINED_STATE_H

#include "base/error.h"
#include "link/link.h"

/* Can a manager join with this folder? -EEXIST if it has a cluster already; -ENOSPC and others if
 * the files do not fit. It is made if it is missing.
 */
int joined_state_prepare(const char *state_dir, struct aq_error *err);

/* 'ca' is the authority's certificate (PEM). */
int joined_state_write(const char *state_dir, const char *name, const char *ca,
                       const struct link_join_keys *keys, struct aq_error *err);

/* Finish what a killed join left complete. Before anything else reads the folder. */
int joined_state_settle(const char *state_dir, struct aq_error *err);

/* The text of 'name' or 'database' without its newline; NULL if there is none. The caller frees. */
int joined_state_read(const char *state_dir, const char *file, char **ret, struct aq_error *err);

/* Write the file 'name' unless it says the same. */
int joined_state_keep_name(const char *state_dir, const char *name, struct aq_error *err);

#endif
