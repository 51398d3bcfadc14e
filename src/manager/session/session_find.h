/* SPDX-License-Identifier: Apache-2.0 */
/* session_find.h - which session "{name}" in a path means
 *
 * An id or name, whole or its beginning, among the sessions of the caller or
 * of 'owner_access_key': the first of id prefix, exact name, name prefix and
 * kernel id prefix that finds any. More than one is an error that lists them.
 */
#ifndef AQ_MANAGER_SESSION_SESSION_FIND_H
#define AQ_MANAGER_SESSION_SESSION_FIND_H

#include "manager/call/api.h"
#include "store/query.h"

/* Parameters of requests that take nothing else. */
struct owner_params {
    const char *owner_access_key;
};
/* clang-format off */
#define OWNER_FIELD(type, member)                                                                  \
    { "owner_access_key|ownerAccessKey", FIELD_STR, FIELD_NULLABLE, offsetof(type, member), 1, 64,  \
      .doc = "act for this key; administrators" }
/* clang-format on */
extern const struct field owner_fields[];

/* The live session, borrowed; NULL after the request was answered. */
const struct session *session_find_live(const struct api *api, struct request *req,
                                        const char *owner_access_key);

/* Does the name match any live session? False also where session_find() would refuse. */
bool session_find_is_live(const struct api *api, const struct request *req,
                          const char *owner_access_key);

/* The live session, borrowed, if session_find() would find it and no other;
 * else NULL, and nothing was answered. For what memory knows as well as the
 * database.
 */
const struct session *session_find_certain(const struct api *api, const struct request *req,
                                           const char *owner_access_key);

/* The same as session_find_live() for requests with owner_fields, decoding them first. */
const struct session *session_find_live_by_owner(const struct api *api, struct request *req);

/* The same among all that ever were, live ones first. A session in ERROR counts
 * as seen if it is found for its owner. 'row' is borrowed for
 * the call and has its kernels; not called if the request was answered
 * because none or several were found, or the database failed. While its server is away, what
 * lives is found in memory.
 */
typedef void session_found_fn(struct request *req, const struct session_row *row, void *data);
void session_find(const struct api *api, struct request *req, const char *owner_access_key,
                  session_found_fn *fn, void *data);

/* The same for requests with owner_fields, decoding them first; data is 'api'. */
void session_find_by_owner(struct api *api, struct request *req, session_found_fn *fn);

/* The same for views of 'row->session', the user's and the project's names and the amounts: one
 * that lives is found in memory, without the rest of its kernels' rows.
 */
void session_find_brief_by_owner(struct api *api, struct request *req, session_found_fn *fn);

#endif
