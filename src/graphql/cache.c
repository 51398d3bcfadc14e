/* SPDX-License-Identifier: Apache-2.0 */
/* Validated documents by their text. */
#include "graphql/cache.h"

#include "base/map.h"
#include "base/memory.h"

struct cache {
    struct map documents; /* hash -> document */
    struct gql_document *newest, *oldest;
    size_t max;
    struct gql_stats stats;
};

struct cache *cache_new(size_t max)
{
    struct cache *cache = aq_alloc(sizeof(*cache));

    cache->max = max;
    return cache;
}

static size_t cache_bytes_of(const struct gql_document *doc)
{
    return sizeof(*doc) + doc->arena.used;
}

static void cache_unlink(struct cache *cache, struct gql_document *doc)
{
    if (doc->newer)
        doc->newer->older = doc->older;
    else
        cache->newest = doc->older;
    if (doc->older)
        doc->older->newer = doc->newer;
    else
        cache->oldest = doc->newer;
    doc->newer = doc->older = NULL;
}

static void cache_link_newest(struct cache *cache, struct gql_document *doc)
{
    doc->older = cache->newest;
    if (cache->newest)
        cache->newest->newer = doc;
    else
        cache->oldest = doc;
    cache->newest = doc;
}

static void cache_drop(struct cache *cache, struct gql_document *doc)
{
    (void)map_remove(&cache->documents, &doc->hash, sizeof(doc->hash));
    cache_unlink(cache, doc);
    cache->stats.documents--;
    cache->stats.bytes -= cache_bytes_of(doc);
    document_unref(doc);
}

void cache_free(struct cache *cache)
{
    while (cache->newest)
        cache_drop(cache, cache->newest);
    map_done(&cache->documents);
    free(cache);
}

struct gql_document *cache_find(struct cache *cache, const char *text, size_t len)
{
    uint64_t hash;
    struct gql_document *doc;

    if (cache->max == 0)
        return NULL;
    hash = aq_hash(text, len);
    doc = map_get(&cache->documents, &hash, sizeof(hash));
    if (!doc || doc->len != len || memcmp(doc->text, text, len) != 0) {
        cache->stats.misses++;
        return NULL;
    }
    cache->stats.hits++;
    if (doc != cache->newest) {
        cache_unlink(cache, doc);
        cache_link_newest(cache, doc);
    }
    return document_ref(doc);
}

void cache_add(struct cache *cache, struct gql_document *doc)
{
    struct gql_document *same;

    if (cache->max == 0 || cache_bytes_of(doc) > DOCUMENT_BYTES_MAX)
        return;
    doc->hash = aq_hash(doc->text, doc->len);
    same = map_get(&cache->documents, &doc->hash, sizeof(doc->hash));
    if (same)
        cache_drop(cache, same);
    (void)map_set(&cache->documents, &doc->hash, sizeof(doc->hash), doc);
    cache_link_newest(cache, document_ref(doc));
    cache->stats.documents++;
    cache->stats.bytes += cache_bytes_of(doc);
    if (cache->stats.documents > cache->max)
        cache_drop(cache, cache->oldest);
}

void cache_get_stats(const struct cache *cache, struct gql_stats *ret)
{
    *ret = cache->stats;
}
