/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - see usage.h */
#include "storage/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <uv.h>

#include "base/map.h"
#include "base/strbuf.h"

#define FOLDERS_MAX 10000 /* that are remembered */

struct usage_entry {
    struct tree_usage usage;
    int64_t counted_usec; /* monotonic */
};

struct usage_table {
    uv_mutex_t lock;
    struct map folders; /* id -> struct usage_entry */
};

struct usage_table *usage_table_new(void)
{
    struct usage_table *table = calloc(1, sizeof(*table));

    if (table && uv_mutex_init(&table->lock) == 0)
        return table;
    free(table);
    return NULL;
}

static void usage_forget_all(struct usage_table *table)
{
    for (size_t i = 0; i < table->folders.count; i++)
        free(table->folders.entries[i].value);
    map_done(&table->folders);
    table->folders = (struct map)MAP_INIT;
}

void usage_table_free(struct usage_table *table)
{
    if (!table)
        return;
    usage_forget_all(table);
    uv_mutex_destroy(&table->lock);
    free(table);
}

static struct usage_entry *usage_find(struct usage_table *table, const struct uuid *folder)
{
    return map_get(&table->folders, folder->bytes, sizeof(folder->bytes));
}

/* What cannot be remembered is counted again. */
static void usage_remember(struct usage_table *table, const struct uuid *folder,
                           const struct usage_entry *counted)
{
    struct usage_entry *entry = usage_find(table, folder);

    if (!entry && table->folders.count >= FOLDERS_MAX)
        usage_forget_all(table);
    if (!entry && (entry = malloc(sizeof(*entry)))
        && map_set(&table->folders, folder->bytes, sizeof(folder->bytes), entry) < 0) {
        free(entry);
        return;
    }
    if (entry)
        *entry = *counted;
}

int usage_get(struct usage_table *table, const struct uuid *folder, int root, int64_t age_usec,
              struct tree_usage *ret, struct aq_error *err)
{
    struct usage_entry counted = { .counted_usec = clock_monotonic_usec() };
    const struct usage_entry *known;
    bool is_fresh;
    int r;

    uv_mutex_lock(&table->lock);
    known = usage_find(table, folder);
    is_fresh = known && counted.counted_usec - known->counted_usec <= age_usec;
    if (is_fresh)
        *ret = known->usage;
    uv_mutex_unlock(&table->lock);
    if (is_fresh)
        return 0;
    if ((r = tree_count(root, &counted.usage, err)) < 0)
        return r;
    *ret = counted.usage;
    uv_mutex_lock(&table->lock);
    usage_remember(table, folder, &counted);
    uv_mutex_unlock(&table->lock);
    return 0;
}

void usage_add(struct usage_table *table, const struct uuid *folder, uint64_t bytes)
{
    struct usage_entry *known;

    uv_mutex_lock(&table->lock);
    known = usage_find(table, folder);
    if (known)
        known->usage.bytes += bytes;
    uv_mutex_unlock(&table->lock);
}

static void usage_write_bytes(struct strbuf *out, uint64_t bytes)
{
    if (bytes < 1u << 20)
        strbuf_addf(out, "%llu bytes", (unsigned long long)bytes);
    else
        strbuf_add_size(out, bytes);
}

int usage_check(struct usage_table *table, const struct uuid *folder, int root, uint64_t quota,
                uint64_t more, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct tree_usage usage;
    int r = quota ? usage_get(table, folder, root, USAGE_FRESH_USEC, &usage, err) : 0;

    if (r < 0 || !quota || (usage.bytes <= quota && more <= quota - usage.bytes))
        return r;
    strbuf_adds(&text, "the folder holds ");
    usage_write_bytes(&text, usage.bytes);
    strbuf_adds(&text, " of its ");
    usage_write_bytes(&text, quota);
    strbuf_adds(&text, "; ");
    usage_write_bytes(&text, more);
    strbuf_adds(&text, " more do not fit");
    return aq_fail(err, EDQUOT, "%s", text.data);
}
