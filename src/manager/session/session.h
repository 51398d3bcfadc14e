/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - sessions, for other features: finding them, their apps, views and use
 *
 * Which session "{name}" in a path means: an id or name, whole or its beginning, among the sessions of the caller or
 * of 'owner_access_key': the first of id prefix, exact name, name prefix and
 * kernel id prefix that finds any. More than one is an error that lists them.
 */
#ifndef AQ_MANAGER_SESSION_SESSION_H
#define AQ_MANAGER_SESSION_SESSION_H

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

/* Parameters of requests about one kernel of a session. */
struct kernel_params {
    const char *owner_access_key, *kernel;
};
/* clang-format off */
#define KERNEL_FIELD(type, member)                                                                 \
    { "kernel", FIELD_STR, FIELD_NULLABLE, offsetof(type, member), 1, 64,                          \
      .doc = "host name of the kernel, such as sub1; default: main1" }
/* clang-format on */
extern const struct field kernel_fields[];

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

/* The session of a row, with its kernels in the arena. */
struct session session_of_row(const struct session_row *row, struct arena *arena);

/* The kernel of this host name (NULL: the main one), borrowed from 'session'. NULL, with an error
 * that lists the names, if there is none.
 */
const struct kernel *session_find_kernel(const struct session *session, const char *hostname,
                                         struct aq_error *err);

/* -EINVAL, of kind "generic-bad-request", unless its program runs on an agent. */
int session_check_kernel_runs(const struct kernel *kernel, struct aq_error *err);

/* The kernel that a request with kernel_fields is about, which are decoded first; NULL after an
 * answer.
 */
const struct kernel *session_find_live_kernel(const struct api *api, struct request *req);

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

/* struct session_mounts.may_mount, by the rules of the session's owner; 'data' is the struct api. */
bool session_may_mount(void *data, const struct session *session, const struct folder *folder);

/* ---- apps: what a kernel publishes ---- */

/* [{"name","protocol","ports"}], the ports as the container counts; [] if it publishes nothing, or
 * is NULL.
 */
void apps_write(const struct kernel *kernel, struct jsonw *w);

/* The JSON list of model/service_port.h, with the ports of the node; "[]" if there is nothing. */
const char *apps_raw(const struct kernel *kernel);

/* The port within the container of an app that is only connected to: this one of its ports, or
 * with 0 its first; 0 if it has none such, or is started.
 */
uint16_t apps_find_port(const struct kernel *kernel, const char *app, int64_t port);

/* [{"name","protocol","ports","state","why",...}]: what is published (as apps_raw() has it), with
 * what the container's executor says of its apps; NULL = it could not be asked.
 */
void apps_write_states(const json_t *published, const json_t *answer, struct jsonw *w);

/* Is it a name that apps have? Such a one is a word of the executor's protocol. */
int apps_check_name(const char *app, struct aq_error *err);

/* ---- ends ---- */

/* End everything that waits for 'roots' (core_find_dependents()), in this turn, so that none of it
 * starts when a root ends. 'done' is called later, once for each; -ENOENT: it had ended. Returns how
 * many times that will be.
 */
size_t session_end_dependents(const struct api *api, struct request *req,
                              const struct session_dependency *roots, size_t root_count,
                              bool forced, core_done_fn done, void *data);

/* ---- views ---- */

/* Members of our own form (docs/rest.md), a bit for each. */
#define SESSION_FIELDS_ALL UINT64_MAX

/* "name,status" as bits. -EINVAL with the known names, field "fields". */
int session_view_read_fields(const char *text, uint64_t *ret, struct aq_error *err) AQ_UNTRUSTED;

/* What a session or an array waits for, as [{"condition", "session" or "array", ..., "state"}]. */
void session_view_dependencies(const struct dependency_row *rows, size_t count, struct jsonw *w);

/* These members of our own form, of a row that was read for them. */
void session_view_own(const struct principal *who, const struct core *core,
                      const struct session_row *row, uint64_t fields, struct jsonw *w);

/* The row of a session that lives as memory has it, without names of user and project: its
 * kernels are 'main', or free() them.
 */
void session_view_fill_live(const struct session *s, struct kernel_row *main,
                            struct session_row *ret);

/* A live array as GET /aliquot/v1/arrays shows it, from memory. */
void session_array_view(const struct core *core, const struct core_array *live, struct jsonw *w);

/* The sum of a metric; false if none of its kernels has it. On the loop's thread. */
bool session_sum_metric(const struct core *core, const struct session *s, const char *key,
                        struct metric *ret, struct metric_kind *ret_kind);

/* ComputeContainer in GraphQL: a kernel and the session it belongs to. */
struct gql_container {
    const struct kernel_row *row;
    const struct session_row *session; /* NULL where it was reached by its agent */
};

#endif
