/* SPDX-License-Identifier: Apache-2.0 */
/* account_rest.h - users, keypairs, domains, projects, policies and resource groups as
 * resources of REST: list, make, change, remove and restore rows
 */
#ifndef AQ_MANAGER_ACCOUNT_ACCOUNT_REST_H
#define AQ_MANAGER_ACCOUNT_ACCOUNT_REST_H

#include "manager/account/account.h"
#include "manager/call/list.h"

struct account_resource {
    const struct account_kind *kind;
    void (*write)(const struct api_list *list, const struct store_page *page, size_t i,
                  struct jsonw *w);
    /* What a domain's administrator may see. */
    void (*narrow)(const struct principal *who, struct store_query *query);
};

/* The object of a row that is an entity. */
void account_write_row(const struct api_list *list, const struct entity *entity, const void *row,
                       int64_t created_usec, struct jsonw *w);

/* ---- whole requests ---- */

extern const struct field account_page_fields[];
/* To narrow by, where administrators of a domain may know all rows. */
void account_narrow_nothing(const struct principal *who, struct store_query *query);
void account_list(const struct api *api, struct request *req,
                  const struct account_resource *resource);
void account_create(struct api *api, struct request *req, const struct account_resource *resource);
void account_modify(struct api *api, struct request *req, const struct account_resource *resource);

extern const struct field account_removal_fields[];
void account_delete(struct api *api, struct request *req, const struct account_resource *resource);
void account_restore(struct api *api, struct request *req, const struct account_resource *resource);

/* ---- in steps, where the answer is another ---- */

/* NULL after an answer that memory is short. */
struct account_change *account_begin(struct api *api, struct request *req,
                                     const struct account_kind *kind);
/* Add the row as the request's body says; false after an answer that says why not. */
bool account_apply_body(struct account_change *change, struct request *req, const char *key);
/* Drop the change and answer with the error. */
void account_end(struct account_change *change, struct request *req, const struct aq_error *err);
/* As account_change_save(); what fails at once is answered. */
void account_save(struct account_change *change, struct request *req, core_done_fn done,
                  void *data);

/* The handlers of a resource: NAME_on_list() and so on, for 'NAME_resource'. */
#define ACCOUNT_HANDLER(name, verb, function)                     \
    static void name##_on_##verb(struct request *req, void *data) \
    {                                                             \
        function(data, req, &name##_resource);                    \
    }
#define ACCOUNT_HANDLERS(name)                    \
    ACCOUNT_HANDLER(name, list, account_list)     \
    ACCOUNT_HANDLER(name, create, account_create) \
    ACCOUNT_HANDLER(name, change, account_modify)
#define ACCOUNT_REMOVAL_HANDLERS(name)            \
    ACCOUNT_HANDLER(name, remove, account_delete) \
    ACCOUNT_HANDLER(name, restore, account_restore)

/* Their rows of a table of routes; 'path' ends in {key}. */
#define ACCOUNT_REMOVAL_ROUTES(name, path, what)                                    \
    { METHOD_DELETE,          path,                                                 \
      API_SUPERADMIN,         name##_on_remove,                                     \
      account_removal_fields, "Remove " what ": take it out of use, or purge it" }, \
    {                                                                               \
        METHOD_POST, path "/restore", API_SUPERADMIN, name##_on_restore, NULL,      \
            "Put back into use what was removed: " what                             \
    }

#endif
