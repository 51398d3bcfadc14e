/* SPDX-License-Identifier: Apache-2.0 */
/* fair_search.h - what Backend.AI's administrators from 26 on say when they search for shares or
 * days of use of domains, projects or users
 *
 * {"filter": {"resource_group": {"equals": name}, ...}, "order": [{"field", "direction"}], "limit",
 * "offset"}. A path may name the resource group, domain and project, too, and a filter must agree.
 * On the loop's thread.
 */
#ifndef AQ_MANAGER_SCHEDULING_FAIR_SEARCH_H
#define AQ_MANAGER_SCHEDULING_FAIR_SEARCH_H

#include "manager/call/export.h"

struct fair_search {
    struct api_list list; /* first; its query has what is asked for */
    enum core_fair_level level;
    struct uuid project, user;  /* nil = any */
    const char *after, *before; /* days of use: the first and the last, or NULL */
    const json_t *order;        /* while it is read */
};

/* Tables of requests, by level: for shares, and for days of use. */
extern const struct field fair_search_domain_fields[], fair_search_project_fields[],
    fair_search_user_fields[];
extern const struct field fair_search_domain_days_fields[], fair_search_project_days_fields[],
    fair_search_user_days_fields[];

/* In the request's arena, with the names of its path and body, in the order of 'orders' (a report
 * without filters). NULL after it has answered why not.
 */
struct fair_search *fair_search_new(const struct api *api, struct request *req,
                                    enum core_fair_level level, const struct export_report *orders);
/* The id in the path: 0, or -EINVAL with the parameter. Nil if the path has none. */
int fair_search_path_id(struct request *req, const char *name, struct uuid *ret,
                        struct aq_error *err);

/* Quantities as {"entries": [{"resource_type", "quantity"}]}: begin, one by one, end. */
void fair_search_begin_slots(struct jsonw *w, const char *key);
void fair_search_write_slot(struct jsonw *w, const char *slot, const char *quantity);
/* The same of an amount (model/slot.h), or of a product with one. */
void fair_search_write_amount(const struct api *api, struct jsonw *w, const char *slot,
                              double amount);
void fair_search_end_slots(struct jsonw *w);
/* A day of UTC: "2026-11-24". */
void fair_search_write_date(struct jsonw *w, const char *key, int64_t usec);

#endif
