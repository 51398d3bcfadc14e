/* SPDX-License-Identifier: Apache-2.0 */
/* setting.c - small durable facts about the cluster */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/setting.h"
#include "store/query.h"
#include "store/transaction.h"

int setting_get(struct store_tx *tx, const char *key, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT value FROM settings WHERE key = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, key);
    r = sql_step(q, err);
    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    strbuf_adds(out, sql_get_text(q));
    return 0;
}

int setting_set(struct store_tx *tx, const char *key, const char *value, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO settings (key, value) VALUES (?, ?)"
                        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, key);
    sql_put_text(q, value);
    return sql_run(q, err);
}

int setting_remove(struct store_tx *tx, const char *key, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM settings WHERE key = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, key);
    return sql_run(q, err);
}

int setting_list(struct store_tx *tx, const char *prefix, struct config_entries *ret,
                 struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    AQ_CLEANUP(aq_freep) char *end = aq_strdup(prefix);
    size_t len = strlen(prefix);
    int r = sql_prepare(
        tx->db, "SELECT key, value FROM settings WHERE key >= ? AND key < ? ORDER BY key", &q, err);

    if (r < 0)
        return r;
    end[len - 1] = '/' + 1;
    sql_put_text(q, prefix);
    sql_put_text(q, end);
    while ((r = sql_step(q, err)) > 0) {
        const char *key = sql_get_text(q);

        config_entries_add(ret, key + len, sql_get_text(q));
    }
    return r;
}
