/* SPDX-License-Identifier: Apache-2.0 */
/* scheduling.h - searches for shares and days of use, and presets, for other features
 *
 * Backend.AI's administrators from 26 on search for shares or days of use of domains, projects or
 * users: {"filter": {"resource_group": {"equals": name}, ...}, "order": [{"field", "direction"}], "limit",
 * "offset"}. A path may name the resource group, domain and project, too, and a filter must agree.
 * On the loop's thread.
 */
#ifndef AQ_MANAGER_SCHEDULING_SCHEDULING_H
#define AQ_MANAGER_SCHEDULING_SCHEDULING_H

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

/* ---- presets ---- */

/* {"NAME": the members of model/resource_preset.h} of all, by name; borrowed until the loop runs
 * again.
 */
const json_t *presets_all(const struct api *api);

/* What is kept of a preset with this name, made from members as a request has them, for
 * presets_add_missing(). Refused as by presets_change().
 */
int presets_make(const struct api *api, const char *name, const json_t *given, json_t **ret,
                 struct aq_error *err);

/* On a thread of the store: add those of 'added', {"NAME": as presets_make() made it}, that are
 * not there. '*ret_all' is for presets_replace(), once the transaction is durable. -E2BIG.
 */
int presets_add_missing(struct store_tx *tx, const json_t *added, json_t **ret_all,
                        struct aq_error *err);

/* Takes 'all'. */
void presets_replace(struct api *api, json_t *all);

#endif
