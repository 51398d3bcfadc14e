/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - a hash map from byte strings to pointers
 *
 * Open addressing with a keyed hash (SipHash-1-3, a random key per process),
 * so that untrusted input cannot choose colliding keys. Keys are copied; values are
 * borrowed. Iteration order is the order of insertion as long as nothing was
 * removed, and arbitrary afterwards; nothing may be inserted or removed while
 * iterating.
 */
#ifndef AQ_BASE_MAP_H
#define AQ_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct map_entry {
    void *value;
    uint64_t hash;
    uint32_t key_len;
    char *key; /* NUL-terminated copy */
};

struct map {
    struct map_entry *entries; /* dense */
    size_t count, cap;
    uint32_t *index; /* slot -> entry + 1; 0 = free */
    size_t index_size;
};

#define MAP_INIT        \
    {                   \
        .entries = NULL \
    }

/* Release keys and tables; values are the caller's. */
void map_done(struct map *map);

/* NULL if absent. */
void *map_get(const struct map *map, const void *key, size_t key_len);

/* Set or replace. 0; -ENOMEM for a key or a count of 4 Gi. */
int map_set(struct map *map, const void *key, size_t key_len, void *value);

/* Remove and return the value, NULL if absent. */
void *map_remove(struct map *map, const void *key, size_t key_len);

/* The same with NUL-terminated keys. */
void *map_gets(const struct map *map, const char *key);
int map_sets(struct map *map, const char *key, void *value);
void *map_removes(struct map *map, const char *key);

/* for (size_t i = 0; i < map.count; i++) use(map.entries[i].key, map.entries[i].value); */

/* The keyed hash itself. Differs from one process to the next. */
uint64_t aq_hash(const void *bytes, size_t len);

#endif
