/* SPDX-License-Identifier: Apache-2.0 */
/* usage_days.h - what was held on each day (UTC), by domain, project or user, in each resource
 * group
 *
 * For functions given to store_read(). What sessions held that were removed counts, too; what is
 * still held counts until now.
 */
#ifndef AQ_STORE_USAGE_DAYS_H
#define AQ_STORE_USAGE_DAYS_H

#include "store/query.h"

#define USAGE_DAYS_ROWS_MAX 100000 /* days of holders, before a part of them is taken */

struct usage_day_slot {
    const char *name;  /* interned */
    double amount_sec; /* amount (model/slot.h) times seconds */
    struct usage_day_slot *next;
};

/* What a row does not tell apart is nil. */
struct usage_day {
    const char *resource_group, *domain;
    struct uuid project, user;
    int64_t day_usec; /* its begin */
    struct usage_day_slot *slots;
};

/* Pages of struct usage_day: the latest first, and with an order that does not begin with '-' the
 * earliest; then by resource group and holder. Narrowed by domain, project_id, user_id and
 * resource_group, and by since_usec and until_usec, both the begins of days and required. A user's
 * row is of one project. -E2BIG beyond USAGE_DAYS_ROWS_MAX.
 */
int store_list_domain_days(struct store_tx *tx, const struct store_query *q,
                           struct store_page **ret, struct aq_error *err);
int store_list_project_days(struct store_tx *tx, const struct store_query *q,
                            struct store_page **ret, struct aq_error *err);
int store_list_user_days(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                         struct aq_error *err);

#endif
