/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.h - users, keypairs, domains, projects, policies and resource groups:
 * list, make and change rows
 *
 * A row is changed by saving a whole new one, made from the living one and
 * from what the request gives. What differs between the kinds is a struct
 * account_kind; everything else is here once.
 */
#ifndef AQ_MANAGER_API_ACCOUNTS_H
#define AQ_MANAGER_API_ACCOUNTS_H

#include "manager/request/list.h"

/* A row that is being put together. */
struct account_row {
    struct api *api;
    struct arena *arena;
    struct event *event; /* to be filled */
    const void *old;     /* NULL: a new one */
    const void *params;
    const char *key;     /* from the path; NULL for a new one */
    struct aq_error err; /* set by whatever fails */
};

struct account_kind {
    const char *object; /* "domain", as in "No such domain." */
    const char *noun;   /* as our messages say it; NULL: rows are not removed, restored, purged */
    enum purge_kind purge;
    enum event_kind event;
    size_t params_size;
    const void *defaults; /* what params begin with; NULL = zeroes */
    int (*list)(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                struct aq_error *err);
    void (*write)(const struct api_list *list, const struct store_page *page, size_t i,
                  struct jsonw *w);
    /* What a domain's administrator may see. */
    void (*narrow)(const struct principal *who, struct store_query *query);
    /* The living row that the path names, or NULL. */
    const void *(*find)(const struct core *core, const char *key);
    /* The living row that a new one would collide with, or NULL. */
    const void *(*find_same)(const struct core *core, const void *params);
    void (*fill)(struct account_row *row);
    /* Select the row that was saved; texts from the row's arena. */
    void (*select)(struct account_row *row, struct store_query *query);
};

/* ---- for fill() ---- */

/* A copy of 'given', or of 'old' if NULL; NULL if both are. */
char *account_text(struct account_row *row, const char *given, const char *old);
void account_slots(struct account_row *row, const json_t *given, const struct slots *old,
                   struct slots *ret);
bool account_bool(enum maybe given, bool old);
/* A copy in the request's arena. */
const char *account_keep(struct account_row *row, const char *text);

/* A whole copy; -ENOMEM with what there is, for user_done(). */
int accounts_copy_user(struct user *ret, const struct user *user) AQ_MUST_CHECK;

/* ---- whole requests ---- */

extern const struct field account_page_fields[];
/* To narrow by, where administrators of a domain may know all rows. */
void account_narrow_nothing(const struct principal *who, struct store_query *query);
void account_list(const struct api *api, struct request *req, const struct account_kind *kind);
void account_create(struct api *api, struct request *req, const struct account_kind *kind);
void account_change(struct api *api, struct request *req, const struct account_kind *kind,
                    const char *key);

/* ---- removal: DELETE of a row, and POST to its /restore ---- */

extern const struct field account_removal_fields[];
bool account_is_hidden(const struct account_kind *kind, const void *row);
void account_remove(struct api *api, struct request *req, const struct account_kind *kind);
void account_restore(struct api *api, struct request *req, const struct account_kind *kind);

/* ---- in steps, where something is to be done between them ---- */

/* Decode into 'params' (prepared by the caller, in the request's arena) and make
 * the batch and the list that will answer. False after an answer that says why not.
 */
bool account_prepare(struct api *api, struct request *req, const struct account_kind *kind,
                     const char *key, void *params, struct event_batch **ret_batch,
                     struct api_list **ret_reply);
/* What 'params' begins with, in the request's arena; NULL = no memory. */
void *account_new_params(struct request *req, const struct account_kind *kind);
/* A batch that saves the living row as it is; NULL with 'err'. */
struct event_batch *account_copy(struct api *api, struct request *req,
                                 const struct account_kind *kind, const char *key,
                                 struct aq_error *err);
/* Save the batch (taken in any case), then answer with the row, or 204 without 'reply'. */
void account_save(struct api *api, struct request *req, struct event_batch *batch,
                  struct api_list *reply);

/* The three handlers of a kind: NAME_on_list() and so on, for 'NAME_kind'. */
#define ACCOUNT_HANDLERS(name)                                                  \
    static void name##_on_list(struct request *req, void *data)                 \
    {                                                                           \
        account_list(data, req, &name##_kind);                                  \
    }                                                                           \
    static void name##_on_create(struct request *req, void *data)               \
    {                                                                           \
        account_create(data, req, &name##_kind);                                \
    }                                                                           \
    static void name##_on_change(struct request *req, void *data)               \
    {                                                                           \
        account_change(data, req, &name##_kind, request_get_param(req, "key")); \
    }

#define ACCOUNT_REMOVAL_HANDLERS(name)                             \
    static void name##_on_remove(struct request *req, void *data)  \
    {                                                              \
        account_remove(data, req, &name##_kind);                   \
    }                                                              \
    static void name##_on_restore(struct request *req, void *data) \
    {                                                              \
        account_restore(data, req, &name##_kind);                  \
    }

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
