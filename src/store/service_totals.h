/* SPDX-License-Identifier: Apache-2.0 */
/* service_totals.h - totals of what proxies counted of model services that have not ended
 *
 * The store keeps a text for each object of a service and does not read it. Rows go with the token, the
 * revision or the service that they are of. For functions given to store_read() and store_write().
 */
#ifndef AQ_STORE_SERVICE_TOTALS_H
#define AQ_STORE_SERVICE_TOTALS_H

#include "base/uuid.h"
#include "store/store.h"

#define SERVICE_TOTAL_OBJECT_MAX 48 /* "token:" and a UUID, with the NUL */

struct service_total {
    struct uuid service_id;
    char object[SERVICE_TOTAL_OBJECT_MAX];
    char *counts;
};

struct service_totals {
    struct service_total *items;
    size_t count, cap;
};

/* A new element; 'counts' is taken. */
void service_totals_add(struct service_totals *totals, const struct uuid *service_id,
                        const char *object, char *counts);
void service_totals_done(struct service_totals *totals);

/* Replace the stored texts by these. Totals of a service that has ended are skipped. */
int service_totals_write(struct store_tx *tx, const struct service_totals *totals,
                         struct aq_error *err);
/* Append all. */
int service_totals_read(struct store_tx *tx, struct service_totals *ret, struct aq_error *err);

#endif
