/* SPDX-License-Identifier: Apache-2.0 */
/* admin.h - what is done to the database while the manager is stopped */
#ifndef AQ_MANAGER_ADMIN_H
#define AQ_MANAGER_ADMIN_H

#include <stdbool.h>

#include "base/error.h"
#include "manager/conf.h"

/* Make the first rows and a superadmin, and print the fresh secrets on
 * standard output: lines for users, or one JSON object. -EEXIST if there is a
 * superadmin already.
 */
int admin_init(const struct manager_conf *conf, const char *email, bool json, struct aq_error *err);

/* "migrate": bring the schema up to date; "check": look at every page and at
 * the ledger, a line per finding; "vacuum": give space back; "take-over": give a
 * database on a server to the manager that opens it next, whatever manager has it;
 * "mark-restored": what backup_restore() does of one that was restored by other
 * means. Returns how many findings.
 */
int admin_db(const struct manager_conf *conf, const char *verb, struct aq_error *err);

/* Print what the database is, as lines or a JSON object; beside a manager, too. */
int admin_db_info(const struct manager_conf *conf, bool json, struct aq_error *err);

/* Copy the database to 'to', a file or a URI, with progress on a terminal. */
int admin_move(const struct manager_conf *conf, const char *to, bool dry_run, struct aq_error *err);

#endif
