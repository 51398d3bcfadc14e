/* people.h - users, keypairs, domains, projects, policies and resource groups:
 * list, make and change rows
 *
 * A row is changed by saving a whole new one, made from the living one and
 * from what the request gives. What differs between the kinds is a struct
 * people_kind; everything else is here once.
 */
#ifndef AQ_MANAGER_API_PEOPLE_H
#define AQ_MANAGER_API_PEOPLE_H

#include "manager/api/api.h"

/* A row that is being put together. */
struct people_row {
    struct api *api;
    struct arena *arena;
    struct event *event;  /* to be filled */
    const void *old;      /* NULL: a new one */
    const void *params;
    const char *key;      /* from the path; NULL for a new one */
    struct aq_error err;  /* set by whatever fails */
};

struct people_kind {
    const char *object; /* "domain", as in "No such domain." */
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
    void (*fill)(struct people_row *row);
    /* Select the row that was saved; texts from the row's arena. */
    void (*select)(struct people_row *row, struct store_query *query);
};

/* ---- for fill() ---- */

/* A copy of 'given', or of 'old' if NULL; NULL if both are. */
char *people_text(struct people_row *row, const char *given, const char *old);
void people_slots(struct people_row *row, const json_t *given, const struct slots *old,
                  struct slots *ret);
bool people_bool(enum maybe given, bool old);
/* A copy in the request's arena. */
const char *people_keep(struct people_row *row, const char *text);

/* A whole copy; -ENOMEM with what there is, for user_done(). */
int people_copy_user(struct user *ret, const struct user *user) AQ_MUST_CHECK;

/* ---- whole requests ---- */

extern const struct field people_page_fields[];
/* To narrow by, where administrators of a domain may know all rows. */
void people_narrow_nothing(const struct principal *who, struct store_query *query);
void people_list(const struct api *api, struct request *req, const struct people_kind *kind);
void people_create(struct api *api, struct request *req, const struct people_kind *kind);
void people_change(struct api *api, struct request *req, const struct people_kind *kind,
                   const char *key);

/* ---- in steps, where something is to be done between them ---- */

/* Decode into 'params' (prepared by the caller, in the request's arena) and make
 * the batch and the list that will answer. False after an answer that says why not.
 */
bool people_prepare(struct api *api, struct request *req, const struct people_kind *kind,
                    const char *key, void *params, struct event_batch **ret_batch,
                    struct api_list **ret_reply);
/* Save the batch (taken in any case), then answer with the row, or 204 without 'reply'. */
void people_save(struct api *api, struct request *req, struct event_batch *batch,
                 struct api_list *reply);

#define PEOPLE_HANDLERS(kind)                                                                      \
    static void on_list(struct request *req, void *data)                                           \
    {                                                                                              \
        people_list(data, req, &(kind));                                                           \
    }                                                                                              \
    static void on_create(struct request *req, void *data)                                         \
    {                                                                                              \
        people_create(data, req, &(kind));                                                         \
    }                                                                                              \
    static void on_change(struct request *req, void *data)                                         \
    {                                                                                              \
        people_change(data, req, &(kind), request_get_param(req, "key"));                          \
    }

#endif
