/* SPDX-License-Identifier: Apache-2.0 */
/* user_import.h - many new users with a keypair each, all of them or none
 *
 * Users who exist stay as they are. What is wrong with which row is told of all rows at
 * once. Passwords are hashed a few at a time on a thread of the store; then the rows are
 * checked again and saved as one batch of events.
 */
#ifndef AQ_MANAGER_ACCOUNT_USER_IMPORT_H
#define AQ_MANAGER_ACCOUNT_USER_IMPORT_H

#include "manager/account/account.h"

#define USER_IMPORT_MAX 2000          /* users */
#define USER_IMPORT_BODY (1536 << 10) /* bytes: it is parsed in one turn of the loop */

struct user_import_result {
    bool dry_run;
    size_t created, existing;
    /* The answer as JSON; for rows that are wrong {"errors": [{"line", "field", "msg"}],
     * "more": N}; else NULL.
     */
    const struct strbuf *json;
};

/* Called once, on the loop, later or before user_import_start() returns. */
typedef void user_import_fn(void *data, int r, const struct aq_error *err,
                            const struct user_import_result *result);

/* What a request may give: "users" and "dry_run". */
extern const struct field user_import_fields[];

/* Takes the reference to 'params', a request's; copies 'by'. */
void user_import_start(struct api *api, json_t *params, const struct audit_who *by,
                       user_import_fn *done, void *data);

#endif
