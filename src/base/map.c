/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - a hash map from byte strings to pointers */
#include "base/map.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/vec.h"

static uint64_t key0, key1;

__attribute__((constructor)) static void choose_key(void)
{
    uint64_t bytes[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };

    if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) < 0)
        bytes[0] ^= (uint64_t)(uintptr_t)&bytes; /* early boot: at least the stack's address */
    key0 = bytes[0];
    key1 = bytes[1];
}

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static void map_sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein, 2012). */
uint64_t aq_hash(const void *bytes, size_t len)
{
    uint64_t v[4] = { key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d,
                      key0 ^ 0x6c7967656e657261, key1 ^ 0x7465646279746573 };
    const unsigned char *in = bytes;
    uint64_t last = (uint64_t)len << 56, word;

    for (size_t left = len; left >= 8; left -= 8, in += 8) {
        memcpy(&word, in, 8);
        v[3] ^= word;
        map_sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = 0; i < (len & 7); i++)
        last |= (uint64_t)in[i] << (8 * i);
    v[3] ^= last;
    map_sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        map_sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_done(struct map *map)
{
    for (size_t i = 0; i < map->count; i++)
        free(map->entries[i].key);
    free(map->entries);
    free(map->index);
    *map = (struct map)MAP_INIT;
}

/* The slot that holds the key, or the free slot where it would go. */
static size_t map_find_slot(const struct map *map, const void *key, size_t key_len, uint64_t hash)
{
    size_t mask = map->index_size - 1, slot = hash & mask;

    for (; map->index[slot]; slot = (slot + 1) & mask) {
        const struct map_entry *e = &map->entries[map->index[slot] - 1];

        if (e->hash == hash && e->key_len == key_len && memcmp(e->key, key, key_len) == 0)
            break;
    }
    return slot;
}

void *map_get(const struct map *map, const void *key, size_t key_len)
{
    size_t slot;

    if (!map->index_size)
        return NULL;
    slot = map_find_slot(map, key, key_len, aq_hash(key, key_len));
    return map->index[slot] ? map->entries[map->index[slot] - 1].value : NULL;
}

static void map_grow_index(struct map *map)
{
    size_t size = map->index_size ? map->index_size * 2 : 16;
    uint32_t *index = aq_alloc_array(size, sizeof(*index));

    for (size_t i = 0; i < map->count; i++) {
        size_t slot = map->entries[i].hash & (size - 1);

        while (index[slot])
            slot = (slot + 1) & (size - 1);
        index[slot] = (uint32_t)(i + 1);
    }
    free(map->index);
    map->index = index;
    map->index_size = size;
}

int map_set(struct map *map, const void *key, size_t key_len, void *value)
{
    uint64_t hash = aq_hash(key, key_len);
    struct map_entry *e;
    size_t slot;

    if (key_len >= UINT32_MAX || map->count >= UINT32_MAX - 1)
        return -ENOMEM;
    if (map->count * 4 >= map->index_size * 3)
        map_grow_index(map);
    slot = map_find_slot(map, key, key_len, hash);
    if (map->index[slot]) {
        map->entries[map->index[slot] - 1].value = value;
        return 0;
    }
    vec_grow(&map->entries, &map->cap, map->count + 1, sizeof(*map->entries));
    e = &map->entries[map->count];
    *e = (struct map_entry){ .value = value, .hash = hash, .key_len = (uint32_t)key_len };
    e->key = aq_alloc(key_len + 1);
    memcpy(e->key, key, key_len);
    map->index[slot] = (uint32_t)++map->count;
    return 0;
}

/* Close the gap at 'slot' so that probing never meets a false end. */
static void map_index_remove(struct map *map, size_t slot)
{
    size_t mask = map->index_size - 1, next = slot;

    for (;;) {
        size_t home;

        next = (next + 1) & mask;
        if (!map->index[next])
            break;
        home = map->entries[map->index[next] - 1].hash & mask;
        if (((next - home) & mask) < ((next - slot) & mask))
            continue;
        map->index[slot] = map->index[next];
        slot = next;
    }
    map->index[slot] = 0;
}

void *map_remove(struct map *map, const void *key, size_t key_len)
{
    size_t slot, at, last;
    void *value;

    if (!map->index_size)
        return NULL;
    slot = map_find_slot(map, key, key_len, aq_hash(key, key_len));
    if (!map->index[slot])
        return NULL;
    at = map->index[slot] - 1;
    value = map->entries[at].value;
    free(map->entries[at].key);
    map_index_remove(map, slot);
    last = --map->count;
    if (at != last) {
        struct map_entry *moved = &map->entries[last];
        size_t moved_slot = map_find_slot(map, moved->key, moved->key_len, moved->hash);

        map->index[moved_slot] = (uint32_t)(at + 1);
        map->entries[at] = *moved;
    }
    return value;
}

void *map_gets(const struct map *map, const char *key)
{
    return map_get(map, key, strlen(key));
}

int map_sets(struct map *map, const char *key, void *value)
{
    return map_set(map, key, strlen(key), value);
}

void *map_removes(struct map *map, const char *key)
{
    return map_remove(map, key, strlen(key));
}
