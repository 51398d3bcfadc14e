/* SPDX-License-Identifier: Apache-2.0 */
/* service_totals.c - see service_totals.h */
#include "store/service_totals.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/vec.h"
#include "store/transaction.h"

void service_totals_add(struct service_totals *totals, const struct uuid *service_id,
                        const char *object, char *counts)
{
    struct service_total *total;

    vec_grow(&totals->items, &totals->cap, totals->count + 1, sizeof(*totals->items));
    total = &totals->items[totals->count++];
    *total = (struct service_total){ .service_id = *service_id, .counts = counts };
    (void)snprintf(total->object, sizeof(total->object), "%s", object);
}

void service_totals_done(struct service_totals *totals)
{
    for (size_t i = 0; i < totals->count; i++)
        free(totals->items[i].counts);
    free(totals->items);
    *totals = (struct service_totals){ .items = NULL };
}

static int service_total_write(struct store_tx *tx, const struct service_total *total,
                               struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO model_service_totals (service_id, object, counts)"
                        " SELECT id, CAST(? AS TEXT), CAST(? AS TEXT) FROM model_services"
                        " WHERE id = ? AND ended_at IS NULL AND (CAST(? AS TEXT) = 'service'"
                        " OR EXISTS (SELECT 1 FROM model_service_tokens t"
                        " WHERE t.service_id = model_services.id"
                        " AND 'token:' || t.id = CAST(? AS TEXT))"
                        " OR EXISTS (SELECT 1 FROM model_service_revisions r"
                        " WHERE r.service_id = model_services.id"
                        " AND 'revision:' || r.number = CAST(? AS TEXT)))"
                        " ON CONFLICT (service_id, object) DO UPDATE SET counts = excluded.counts",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, total->object);
    sql_put_text(q, total->counts);
    sql_put_uuid(q, &total->service_id, id);
    for (int i = 0; i < 3; i++) /* what was removed meanwhile does not come back */
        sql_put_text(q, total->object);
    return sql_run(q, err);
}

int service_totals_write(struct store_tx *tx, const struct service_totals *totals,
                         struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < totals->count; i++)
        r = service_total_write(tx, &totals->items[i], err);
    return r;
}

int service_totals_read(struct store_tx *tx, struct service_totals *ret, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "SELECT service_id, object, counts FROM model_service_totals"
                        " ORDER BY service_id, object",
                        &q, err);

    if (r < 0)
        return r;
    while ((r = sql_step(q, err)) > 0) {
        struct uuid id = sql_get_uuid(q);
        AQ_CLEANUP(aq_freep) char *object = aq_strdup(sql_get_text(q));

        service_totals_add(ret, &id, object ? object : "", aq_strdup(sql_get_text(q)));
    }
    sql_end(q);
    return r;
}
