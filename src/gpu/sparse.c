/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c - physical memory behind tiles of sparse arrays
 *
 * A tile keeps its handle's memory alive after the handle was released, so it
 * is an owner like a mapping is, until it is unmapped or its array destroyed.
 */
#include "gpu/sparse.h"

#include "gpu/hooks.h"
#include "gpu/ledger.h"
#include "gpu/shared_alloc.h"

#define TILES_AT_ONCE 64

static uint64_t sparse_mix(uint64_t key, uint64_t value)
{
    return (key ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (key >> 29);
}

/* A tile has no address: its place in its array is its key. Bytes between the
 * members may be anything, so not all of the struct is taken.
 */
static uint64_t sparse_key_of(const CUarrayMapInfo *tile)
{
    uint64_t key = sparse_mix((uintptr_t)tile->resource.array, (uint64_t)tile->subresourceType);

    if (tile->subresourceType) {
        key = sparse_mix(key, tile->subresource.miptail.layer);
        return sparse_mix(key, tile->subresource.miptail.offset);
    }
    key = sparse_mix(key, tile->subresource.sparseLevel.level);
    key = sparse_mix(key, tile->subresource.sparseLevel.layer);
    key = sparse_mix(key, tile->subresource.sparseLevel.offsetX);
    key = sparse_mix(key, tile->subresource.sparseLevel.offsetY);
    return sparse_mix(key, tile->subresource.sparseLevel.offsetZ);
}

static void sparse_drop_tile(uint64_t key)
{
    struct ledger_entry tile, freed;

    if (ledger_take(LEDGER_TILE, key, &tile) && ledger_unref(LEDGER_HANDLE, tile.link, &freed))
        shared_alloc_release(&freed);
}

/* A tile that is mapped again loses what was behind it. One that cannot be entered
 * stays an owner: charged for too long, never too short.
 */
static void sparse_remember(const CUarrayMapInfo *tile)
{
    bool is_map = tile->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
    bool is_ours = is_map && ledger_ref(LEDGER_HANDLE, tile->memHandle);

    sparse_drop_tile(sparse_key_of(tile));
    if (is_ours)
        (void)ledger_add(LEDGER_TILE, sparse_key_of(tile), 0, (uintptr_t)tile->resource.array,
                         tile->memHandle);
}

CUresult on_map_array(fn_cuMemMapArrayAsync *real, CUarrayMapInfo *list, unsigned int count,
                      CUstream stream)
{
    CUresult result = real(list, count, stream);

    for (unsigned int i = 0; list && result == CUDA_SUCCESS && i < count; i++)
        sparse_remember(&list[i]);
    return result;
}

struct tiles {
    uint64_t array, keys[TILES_AT_ONCE];
    int count;
};

static void sparse_collect(const struct ledger_entry *entry, void *data)
{
    struct tiles *tiles = data;

    if (entry->bytes == tiles->array && tiles->count < TILES_AT_ONCE)
        tiles->keys[tiles->count++] = entry->key;
}

void sparse_drop_array(const void *array)
{
    struct tiles tiles;

    do {
        tiles.array = (uintptr_t)array;
        tiles.count = 0;
        ledger_each(LEDGER_TILE, sparse_collect, &tiles);
        for (int i = 0; i < tiles.count; i++)
            sparse_drop_tile(tiles.keys[i]);
    } while (tiles.count == TILES_AT_ONCE);
}
