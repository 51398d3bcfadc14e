/* SPDX-License-Identifier: Apache-2.0 */
/* usage_total.h - how much was held in a time, by whom or where
 *
 * For functions given to store_read(). What was held for a part of the time counts for that
 * part; what sessions held that were removed counts, too.
 */
#ifndef AQ_STORE_USAGE_TOTAL_H
#define AQ_STORE_USAGE_TOTAL_H

#include "store/query.h"

#define USAGE_TOTAL_ROWS_MAX 40000

enum usage_by { USAGE_BY_DOMAIN, USAGE_BY_PROJECT, USAGE_BY_USER, USAGE_BY_RESOURCE_GROUP };

/* Zero-initialise. */
struct usage_total_query {
    int64_t from_usec, until_usec; /* the latter not after now: what is still held counts to it */
    enum usage_by by;
    const char *domain, *resource_group; /* NULL = of all */
    const struct uuid *project_id, *user_id;
};

/* Of one slot; texts are borrowed for the call. A project and a user have their domain, and
 * nothing else has; what it is not summed by is NULL or nil, as is a resource group of sessions
 * that had none.
 */
struct usage_total {
    const char *domain, *project, *user, *resource_group;
    struct uuid project_id, user_id;
    const char *slot;
    double held; /* amount (model/slot.h) times microseconds */
    int64_t sessions;
};
/* Returns 0, or -errno to stop. */
typedef int (*usage_total_fn)(void *data, const struct usage_total *row);

/* By domain, project, user and resource group, those of one next to each other. -E2BIG if there
 * are more than USAGE_TOTAL_ROWS_MAX.
 */
int store_read_usage_total(struct store_tx *tx, const struct usage_total_query *query,
                           usage_total_fn visit, void *data, struct aq_error *err);

#endif
