/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - people and limits of a Backend.AI database or fixture, all of them or none
 *
 * The request has rows of Backend.AI's tables as its columns are called. Who and what
 * exists already stays as it is; what cannot be had here is left, or changed, and said.
 * Rows that contradict each other or what is here refuse all. Text is parsed, passwords are
 * hashed on threads of the store; then the rows are checked again and saved in one
 * transaction.
 */
#ifndef AQ_MANAGER_BACKENDAI_IMPORT_H
#define AQ_MANAGER_BACKENDAI_IMPORT_H

#include "manager/account/account.h"

#define BACKENDAI_BODY (16u << 20)   /* bytes of a request */
#define BACKENDAI_VALUES_MAX 400000u /* of its JSON: some 80 MB once parsed */

struct backendai_result {
    size_t taken; /* rows, changed ones too */
    /* The answer as JSON; for rows that are wrong {"errors": [{"table", "line", "field",
     * "msg"}], "more": N}; else NULL.
     */
    const struct strbuf *json;
};

/* Called once, on the loop, later than backendai_import_start() returns. */
typedef void backendai_done_fn(void *data, int r, const struct aq_error *err,
                               const struct backendai_result *result);

/* What a request may give: "tables", "plain_passwords" and "dry_run". */
extern const struct field backendai_import_fields[];

/* 'text' is borrowed until 'done', 'by' is copied. */
void backendai_import_start(struct api *api, const char *text, size_t len,
                            const struct audit_who *by, backendai_done_fn *done, void *data);

#endif
