/* SPDX-License-Identifier: Apache-2.0 */
/* What etcd has, as keys and values of the configuration tree. */
#include "manager/etcd/etcd_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "model/config_key.h"

static void etcd_entry_free(struct etcd_entry *entry)
{
    if (!entry)
        return;
    free(entry->key);
    free(entry->value);
    free(entry);
}

void etcd_view_done(struct etcd_view *view)
{
    for (size_t i = 0; i < view->entries.count; i++)
        etcd_entry_free(view->entries.entries[i].value);
    map_done(&view->entries);
    *view = (struct etcd_view){ .bytes = 0 };
}

bool etcd_key_is_carried(const char *key)
{
    if (strncmp(key, "sgroup", 6) == 0 && (!key[6] || key[6] == '/'))
        return key[6] && strchr(key + 7, '/');
    if (strncmp(key, "nodes", 5) == 0 && (!key[5] || key[5] == '/'))
        return strncmp(key + 5, "/agents/", 8) == 0 || strncmp(key + 5, "/manager/", 9) == 0;
    return *key;
}

/* The key in the tree's spelling, to be freed; NULL with the reason. */
static char *etcd_key_read(const char *raw, size_t len, const char **ret_problem)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf key = STRBUF_INIT;

    if (memchr(raw, '\0', len) || config_key_add(&key, "key", raw, NULL) < 0)
        *ret_problem = "it cannot be a key of the configuration tree";
    else if (!etcd_key_is_carried(key.data))
        *ret_problem = "its scope does not exist";
    else
        return strbuf_steal(&key);
    return NULL;
}

static struct etcd_entry *etcd_entry_new(struct etcd_pair *pair, size_t prefix_len)
{
    struct etcd_entry *entry = aq_alloc(sizeof(*entry));

    entry->mod_revision = pair->mod_revision;
    entry->key = etcd_key_read(pair->key + prefix_len, pair->key_len - prefix_len, &entry->problem);
    entry->bytes = pair->key_len;
    if (!entry->key)
        return entry;
    if (pair->has_lease)
        entry->problem = "it has a lease";
    else if (pair->value_len > CONFIG_VALUE_MAX)
        entry->problem = "its value is too long";
    else if (memchr(pair->value, '\0', pair->value_len)
             || !utf8_is_valid(pair->value, pair->value_len))
        entry->problem = "its value is not text in UTF-8";
    else
        entry->value = AQ_TAKE(pair->value);
    entry->bytes += entry->value ? pair->value_len : 0;
    return entry;
}

int etcd_view_apply(struct etcd_view *view, struct etcd_pair *pair, size_t prefix_len,
                    const struct etcd_entry **ret, struct aq_error *err)
{
    const char *raw = pair->key + prefix_len;
    struct etcd_entry *entry, *old;

    if (pair->key_len < prefix_len)
        return aq_fail(err, EPROTO, "etcd sends a key that was not asked for");
    if ((old = map_remove(&view->entries, raw, pair->key_len - prefix_len)))
        view->bytes -= old->bytes;
    etcd_entry_free(old);
    if (ret)
        *ret = NULL;
    if (pair->is_gone)
        return 0;
    entry = etcd_entry_new(pair, prefix_len);
    view->bytes += entry->bytes;
    (void)map_set(&view->entries, raw, pair->key_len - prefix_len, entry);
    if (view->entries.count > ETCD_KEYS_MAX || view->bytes > ETCD_VIEW_MAX)
        return aq_fail(err, E2BIG,
                       "etcd has more than %d keys or %u bytes in the namespace; delete some",
                       ETCD_KEYS_MAX, ETCD_VIEW_MAX);
    if (ret)
        *ret = entry;
    return 0;
}

static bool etcd_item_is_canonical(const struct etcd_item *item)
{
    return item->raw_len == strlen(item->key) && memcmp(item->raw, item->key, item->raw_len) == 0;
}

static int etcd_item_compare(const void *left, const void *right)
{
    const struct etcd_item *a = left, *b = right;
    int order = strcmp(a->key, b->key);

    if (order == 0)
        order = etcd_item_is_canonical(b) - etcd_item_is_canonical(a);
    return order ? order : strcmp(a->raw, b->raw);
}

struct etcd_item *etcd_view_sort(const struct etcd_view *view, size_t *ret_count)
{
    struct etcd_item *items = aq_alloc_array(view->entries.count + 1, sizeof(*items));
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < view->entries.count; i++) {
        const struct map_entry *at = &view->entries.entries[i];
        const struct etcd_entry *entry = at->value;

        if (entry->key)
            items[count++] = (struct etcd_item){ entry->key, entry->value, at->key, at->key_len,
                                                 entry->mod_revision };
    }
    qsort(items, count, sizeof(*items), etcd_item_compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || strcmp(items[kept - 1].key, items[i].key) != 0)
            items[kept++] = items[i];
    *ret_count = kept;
    return items;
}

const struct map_entry *etcd_view_find_latest(const struct etcd_view *view)
{
    const struct map_entry *found = NULL;
    int64_t revision = 0;

    for (size_t i = 0; i < view->entries.count; i++) {
        const struct etcd_entry *entry = view->entries.entries[i].value;

        if (entry->key && entry->mod_revision > revision) {
            found = &view->entries.entries[i];
            revision = entry->mod_revision;
        }
    }
    return found;
}
