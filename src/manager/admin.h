/* SPDX-License-Identifier: Apache-2.0 */
/* admin.h - what is done to the database while the manager is stopped */
#ifndef AQ_MANAGER_ADMIN_H
#define AQ_MANAGER_ADMIN_H

#include <stdbool.h>

#include "base/error.h"

/* Make the first rows and a superadmin, and print the fresh secrets on
 * standard output: lines for users, or one JSON object. -EEXIST if there is a
 * superadmin already.
 */
int admin_init(const char *state_dir, const char *email, bool json, struct aq_error *err);

/* "migrate": bring the schema up to date; "check": look at every page and at
 * the ledger, a line per finding. Returns how many findings.
 */
int admin_db(const char *state_dir, const char *verb, struct aq_error *err);

#endif
