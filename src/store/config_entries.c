/* SPDX-License-Identifier: Apache-2.0 */
/* config_entries.c - the configuration tree as rows of key and value */
#include "store/config_entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "model/config_key.h"
#include "store/transaction.h"

/* At a key, and between "key/" and "key0", which '0' follows. */
#define CONFIG_ENTRIES_WITHIN " WHERE key = ? OR (key >= ? AND key < ?)"

void config_entries_done(struct config_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->items[i].key);
        free(entries->items[i].value);
    }
    free(entries->items);
    *entries = (struct config_entries){ 0 };
}

void config_entries_add(struct config_entries *entries, const char *key, const char *value)
{
    (void)vec_grow(&entries->items, &entries->cap, entries->count + 1, sizeof(*entries->items));
    entries->items[entries->count++] = (struct config_entry){ aq_strdup(key), aq_strdup(value) };
}

/* The bounds of what is below a key, which live until the statement was run. */
struct config_range {
    char begin[CONFIG_KEY_MAX + 2], end[CONFIG_KEY_MAX + 2];
};

static void config_entries_put_range(struct sql_stmt *q, const char *key, bool below,
                                     struct config_range *range)
{
    size_t len = strnlen(key, CONFIG_KEY_MAX);

    for (int i = 0; i < 2; i++) {
        char *text = i ? range->end : range->begin;

        memcpy(text, key, len);
        text[len] = i ? '0' : '/';
        text[len + 1] = '\0';
    }
    sql_put_text(q, key);
    sql_put_text(q, !len ? "" : range->begin);
    sql_put_text(q, !below ? "" : !len ? "\x7f" : range->end); /* keys are ASCII */
}

int config_entries_read(struct store_tx *tx, const char *key, bool below,
                        struct config_entries *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct config_range range;
    int r = sql_prepare(
        tx->db, "SELECT key, value FROM config_entries" CONFIG_ENTRIES_WITHIN " ORDER BY key", &q,
        err);

    if (r < 0)
        return r;
    config_entries_put_range(q, key, below, &range);
    while ((r = sql_step(q, err)) > 0) {
        const char *found = sql_get_text(q);

        config_entries_add(ret, found, sql_get_text(q));
    }
    return r;
}

int config_entry_put(struct store_tx *tx, const char *key, const char *value, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO config_entries (key, value) VALUES (?, ?)"
                        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, key);
    sql_put_text(q, value);
    return sql_run(q, err);
}

int config_entries_remove(struct store_tx *tx, const char *key, bool below, struct aq_error *err)
{
    struct config_range range;
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM config_entries" CONFIG_ENTRIES_WITHIN, &q, err);

    if (r < 0)
        return r;
    config_entries_put_range(q, key, below, &range);
    return sql_change(q, err);
}

int config_entries_check_size(struct store_tx *tx, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(
        tx->db, "SELECT COUNT(*), SUM(LENGTH(key) + LENGTH(value)) FROM config_entries", &q, err);

    if (r < 0 || (r = sql_step(q, err)) < 0)
        return r;
    if (sql_get_int(q) > CONFIG_KEYS_MAX)
        return aq_fail_field(err, E2BIG, "key",
                             "the configuration tree may have %d keys; delete some",
                             CONFIG_KEYS_MAX);
    if (sql_get_int(q) > CONFIG_SIZE_MAX)
        return aq_fail_field(err, E2BIG, "value",
                             "the configuration tree may have %u characters; delete some",
                             CONFIG_SIZE_MAX);
    return 0;
}
