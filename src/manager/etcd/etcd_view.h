/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_view.h - what etcd has below /sorna/NAMESPACE/, as keys and values of the configuration tree
 *
 * Everything there is counted; only what can be in the tree has a value here. Other clients choose
 * what they write: keys that are not UTF-8, too long, of a scope that does not exist or of a lease
 * are never a part of the tree, and a value that is not text or too long is unusable. Pure.
 */
#ifndef AQ_MANAGER_ETCD_ETCD_VIEW_H
#define AQ_MANAGER_ETCD_ETCD_VIEW_H

#include "base/map.h"
#include "manager/etcd/etcd_wire.h"

#define ETCD_KEYS_MAX 20000      /* of the view, whether they are of the tree or not */
#define ETCD_VIEW_MAX (8u << 20) /* bytes of their keys and values */

struct etcd_entry {
    char *key;           /* as config_key_add() writes it; NULL = it is not of the tree */
    char *value;         /* NULL = unusable */
    const char *problem; /* why one of them is NULL: a static text; else NULL */
    size_t bytes;
    int64_t mod_revision;
};

/* Zeroed = empty. */
struct etcd_view {
    struct map entries; /* key in etcd without the prefix -> struct etcd_entry */
    size_t bytes;
    int64_t revision; /* of the last change that it has */
};

void etcd_view_done(struct etcd_view *view);

/* A key of etcd, 'prefix_len' bytes of which are the prefix, is there or gone now. The pair's
 * value may be taken. *ret (may be NULL) gets the entry, NULL if it is gone. -E2BIG: there is too much.
 */
int etcd_view_apply(struct etcd_view *view, struct etcd_pair *pair, size_t prefix_len,
                    const struct etcd_entry **ret, struct aq_error *err) AQ_UNTRUSTED;

/* Is a key, as config_key_add() writes it, of a scope that is kept in both? */
bool etcd_key_is_carried(const char *key);

/* A key of the tree that etcd has. */
struct etcd_item {
    const char *key, *value, *raw; /* raw: as etcd has it, without the prefix */
    size_t raw_len;
    int64_t mod_revision;
};

/* All keys of the tree, sorted, each once: of several spellings of a key in etcd the one that
 * config_key_add() writes counts, else the first. They borrow from the view. free() the array.
 */
struct etcd_item *etcd_view_sort(const struct etcd_view *view, size_t *ret_count);

/* The key of the tree that was changed last, by which a history is recognised; NULL = none. */
const struct map_entry *etcd_view_find_latest(const struct etcd_view *view);

#endif
