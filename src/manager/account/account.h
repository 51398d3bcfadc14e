/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - changes of users, keypairs, domains, projects, policies and resource
 * groups, as REST and GraphQL make them
 *
 * A row is changed by saving a whole new one, made from the living one and
 * from what the request gives, by a table of fields. What differs between the
 * kinds is a struct account_kind. Everything here runs on the loop's thread.
 */
#ifndef AQ_MANAGER_ACCOUNT_ACCOUNT_H
#define AQ_MANAGER_ACCOUNT_ACCOUNT_H

#include "manager/call/api.h"
#include "manager/call/list.h"
#include "manager/folder/folder.h"
#include "store/password.h"
#include "store/query.h"

/* A row that is being put together. */
struct account_row {
    struct api *api;
    struct arena *arena;
    struct event *event; /* to be filled */
    const void *old;     /* NULL: a new one */
    const void *params;
    const char *key;      /* names the living row; NULL for a new one */
    const char *password; /* of a user: to be hashed before the row is saved; NULL = none */
    struct aq_error err;  /* set by whatever fails */
};

struct account_change;

struct account_kind {
    const char *object; /* "domain", as in "No such domain." */
    const char *noun;   /* as our messages say it; NULL: rows are not removed, restored, purged */
    enum purge_kind purge;
    enum event_kind event;
    const struct field *create, *change; /* what a request may give */
    /* Rows are structs of the entity, at this offset of the event: so are the params, or they begin
     * with one, and the row is the old or a new one after fill(), with what was given. NULL: fill()
     * does it all.
     */
    const struct entity *entity;
    size_t offset;
    size_t params_size;   /* 0 = the entity's */
    const void *defaults; /* what params begin with; NULL = zeroes */
    int (*list)(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                struct aq_error *err);
    /* The living row that the key names, or NULL. */
    const void *(*find)(const struct core *core, const char *key);
    /* The living row that a new one would collide with, or NULL. */
    const void *(*find_same)(const struct core *core, const void *params);
    void (*fill)(struct account_row *row);     /* NULL = nothing beside the entity */
    void (*complete)(struct account_row *row); /* after what was given; NULL = nothing */
    /* Add the events that the row's needs beside it; NULL = none. Before select(). */
    void (*follow)(struct account_change *change, struct account_row *row);
    /* Select the row that was saved; texts from the row's arena. */
    void (*select)(struct account_row *row, struct store_query *query);
};

extern const struct account_kind account_domain, account_keypair, account_policy, account_project,
    account_resource_group, account_user;
/* account_kind.follow of domains: if the row has another name than before, it is changed wherever
 * it is kept.
 */
void account_rename_domain_row(struct account_change *change, struct account_row *row);
/* The registries whose images a domain may use, as an array; empty = all. */
void account_write_registries(const struct domain *domain, struct jsonw *w);
/* The names of members of its scheduler_opts that nothing looks at, as an array. */
void account_write_unused_options(const struct resource_group *group, struct jsonw *w);

/* ---- for fill() ---- */

/* A copy of 'given', or of 'old' if NULL; NULL if both are. */
char *account_text(struct account_row *row, const char *given, const char *old);
/* A copy in the request's arena. */
const char *account_keep(struct account_row *row, const char *text);

/* ---- changing ---- */

/* One change on its way into the store, in the request's arena. */
struct account_change {
    struct api *api;
    struct arena *arena;
    const struct account_kind *kind;
    struct event_batch *batch; /* NULL once it is being saved */
    struct store_query query;  /* selects the row of account_change_row() */

    struct audit_who by;
    const char *password;             /* to be hashed first */
    struct folder_rules_rename rules; /* of a domain that is renamed */
    char hash[PASSWORD_HASH_MAX];
    core_done_fn done;
    void *data;
};

/* With an empty batch. Ends with account_change_save() or _drop(). */
struct account_change *account_change_new(struct api *api, struct arena *arena,
                                          const struct account_kind *kind);
void account_change_drop(struct account_change *change);

/* Does it end logins of who makes it, by a password, a state or a keypair? */
bool account_change_ends_logins(const struct account_change *change, const struct audit_who *by);

/* -EPERM if nobody could administer the cluster once the user or keypair of the event is saved or
 * removed: only a change of the database would mend that.
 */
int account_check_superadmin(const struct core *core, const struct event *e, struct aq_error *err);

/* Add the row that 'key' names, or with NULL a new one, changed as 'given' says
 * (NULL: not at all). 'given' is not needed after it. -EINVAL names the field,
 * -ENOENT, -EEXIST.
 */
int account_change_row(struct account_change *change, const char *key, const json_t *given,
                       struct aq_error *err);

/* Users become members of a project of their domain, or are members no longer. */
#define ACCOUNT_MEMBERS_MAX 1000
int account_change_members(struct account_change *change, const char *project,
                           const struct str_list *users, bool is_member, struct aq_error *err);

/* Of a new keypair; both keys NULL = to be made, policy NULL = 'default'. */
struct account_keys {
    const char *access_key, *secret_key, *policy;
};

/* A keypair for the new user that account_change_row() has just added; NULL = all as it is
 * by default. -EINVAL names the field, -ENOENT.
 */
int account_change_add_keypair(struct account_change *change, const struct account_keys *given,
                               struct aq_error *err);
/* Let the sessions of a keypair accept this public SSH key from now on; NULL = none. -ENOENT. */
int account_change_ssh_key(struct account_change *change, const char *access_key,
                           const char *public_key, struct aq_error *err);
/* Remove a keypair for good. -ENOENT, -EBUSY while sessions of it are live. */
int account_change_remove_keypair(struct account_change *change, const char *access_key,
                                  struct aq_error *err);

/* 'by' is copied. 'done' comes later, once the change is durable and in memory, or with why it is not.
 * -EBUSY as core_claim() says it: it does not come, and nothing is changed.
 */
int account_change_save(struct account_change *change, const struct audit_who *by,
                        core_done_fn done, void *data, struct aq_error *err);

/* ---- who may use which resource groups ---- */

/* Before core_change_access(): -ENOENT if something that it names is not there. */
int account_check_access(const struct api *api, struct arena *arena,
                         struct core_access_change *change, struct aq_error *err);

/* ---- removal ---- */

bool account_is_hidden(const struct account_kind *kind, const void *row);
/* Of a batch's row: taken out of use, or put back. */
void account_set_hidden(const struct account_kind *kind, struct event *e, bool is_hidden);

/* To take a row out of use, or to remove it and what is attached to it for good. In the
 * request's arena; the first part is the caller's.
 */
struct account_removal {
    struct api *api;
    struct arena *arena;
    const struct principal *who;
    const struct audit_who *by; /* the request's */
    const struct account_kind *kind;
    const char *key;
    bool force; /* end its live sessions */
    bool purge; /* for good; not while sessions are live */
    bool dry_run;
    core_done_fn done; /* once, perhaps before account_remove() returns */
    void *data;

    const char *name;
    struct purge_plan plan; /* what is, or would be purged */
    size_t sessions;        /* live ones that are, or would be ended */

    struct uuid id; /* of a user or project */
    size_t waiting; /* sessions whose end is not durable yet */
    int r;          /* of the first that failed */
    struct aq_error err;
};
void account_remove(struct account_removal *removal);

/* ---- rows as resources of REST: list, make, change, remove and restore them ---- */

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

/* Begin a change for the request, in the request's arena. */
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

/* ---- settings ---- */

struct password_rules;

/* New passwords must follow these rules. Before the first request. */
void account_set_password_rules(struct api *api, const struct password_rules *rules);
/* -EINVAL (invalid-api-params) names 'field' and what the new password lacks. */
int account_check_password(const struct api *api, const char *field, const char *password,
                           struct aq_error *err);
/* How long a password may be used, in microseconds; 0 = forever. */
int64_t account_password_max_age(const struct api *api);
/* Users who sign up get this domain, so it keeps its name; borrowed. */
void account_set_signup_domain(struct api *api, const char *domain);

#endif
