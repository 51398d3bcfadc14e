/* SPDX-License-Identifier: Apache-2.0 */
/* problem.h - errors as problem documents
 *
 * application/problem+json in the form of Backend.AI's API:
 * {"type": "https://api.backend.ai/probs/<slug>", "title": ..., "msg": ...,
 *  "data": ..., "error_code": "domain_operation_detail"}; msg and data only
 * where there is something to say.
 */
#ifndef AQ_HTTP_PROBLEM_H
#define AQ_HTTP_PROBLEM_H

#include "base/error.h"
#include "base/strbuf.h"

struct problem_type {
    const char *slug; /* what struct aq_error calls 'kind' */
    int status;
    const char *title;
    const char *error_code;
};

/* By slug, or NULL. */
const struct problem_type *problem_find(const char *slug);

/* The one mapping from errors to HTTP: the kind if it is a slug, else the
 * code; whatever is unknown is "internal-server-error". Never NULL.
 */
const struct problem_type *problem_of(const struct aq_error *err);

/* Write the document. err->text becomes msg. 'data' is JSON text or NULL;
 * without it, a named field of "invalid-api-params" becomes
 * {"<field>": "<text>"} with the msg "Input validation error", and for
 * "object-not-found" the field is the object in the title "No such <object>.".
 * The text of an "internal-server-error" is not shown to clients.
 */
void problem_write(struct strbuf *out, const struct aq_error *err, const char *data);

/* Fill 'err' for a missing object ("session", "environment image", ...) with a
 * msg; returns -ENOENT.
 */
int problem_no_such(struct aq_error *err, const char *object, const char *fmt, ...) AQ_PRINTF(3, 4);

/* The field of an error that the caller's role causes, and the title of its problem: the key is
 * good, whatever the kind says, which is Backend.AI's.
 */
#define PROBLEM_FIELD_ROLE "role of the caller"
#define PROBLEM_TITLE_ROLE "The role is not sufficient."

#endif
