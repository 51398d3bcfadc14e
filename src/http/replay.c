/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures already seen. */
#include "http/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "http/sign.h"

/* One bucket per second of the request's date, in a ring that spans the
 * window both ways. A bucket is a list of pages, each an open-addressing
 * table of 32-bit fingerprints that is twice the size of the one before and
 * is never rehashed: a signature's place comes from other bits of its hash
 * than its fingerprint, so that only the few entries of one run are compared.
 */
#define BUCKETS 2048 /* > 2 * 15 minutes of seconds */
#define FIRST_PAGE 32u

/* Entries of keys, by a hash of the key and the part of the window that they are dated in: keys
 * that share a place share their part of the cache.
 */
#define KEYS 1024
#define PARTS 16
#define PART_SEC (BUCKETS / PARTS)

struct page {
    struct page *older;
    uint32_t size, count;
    uint32_t slots[]; /* 0 = free */
};

struct bucket {
    int64_t second;
    struct page *newest;
};

struct http_replay {
    size_t count, max;
    struct bucket buckets[BUCKETS];
    int64_t parts[PARTS]; /* which of all parts of time each is */
    uint32_t keys[PARTS][KEYS];
};

struct http_replay *replay_new(size_t entries_max)
{
    struct http_replay *replay = aq_alloc(sizeof(*replay));

    replay->max = entries_max ? entries_max : REPLAY_DEFAULT_MAX;
    return replay;
}

void replay_set_max(struct http_replay *replay, size_t entries_max)
{
    replay->max = entries_max;
}

static void replay_empty_bucket(struct http_replay *replay, struct bucket *bucket)
{
    for (struct page *page = bucket->newest, *older; page; page = older) {
        older = page->older;
        replay->count -= page->count;
        free(page);
    }
    bucket->newest = NULL;
}

void replay_free(struct http_replay *replay)
{
    if (!replay)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        replay_empty_bucket(replay, &replay->buckets[i]);
    free(replay);
}

/* Where the fingerprint is, or the free slot that ends its run. */
static uint32_t *replay_find_slot(struct page *page, uint64_t hash, uint32_t fingerprint)
{
    uint32_t i = (uint32_t)(hash >> 32) & (page->size - 1);

    while (page->slots[i] && page->slots[i] != fingerprint)
        i = (i + 1) & (page->size - 1);
    return &page->slots[i];
}

/* A page with room. */
static struct page *replay_page_with_room(struct bucket *bucket)
{
    struct page *page = bucket->newest;
    uint32_t size = page ? page->size * 2 : FIRST_PAGE;

    if (page && page->count < page->size / 4 * 3)
        return page;
    page = aq_alloc(sizeof(*page) + size * sizeof(page->slots[0]));
    page->size = size;
    page->older = bucket->newest;
    bucket->newest = page;
    return page;
}

/* Give up what can no longer be accepted anyway. */
static void replay_expire(struct http_replay *replay, int64_t now_usec)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        struct bucket *bucket = &replay->buckets[i];

        if ((bucket->second + 1) * USEC_PER_SEC <= now_usec - SIGN_WINDOW_USEC)
            replay_empty_bucket(replay, bucket);
    }
}

/* Where the key's entries of that second are counted; *ret_count gets all that it has. */
static uint32_t *replay_find_count(struct http_replay *replay, const char *access_key,
                                   int64_t second, size_t *ret_count)
{
    size_t key = aq_hash(access_key, strlen(access_key)) % KEYS;
    int64_t part = second / PART_SEC;
    size_t at = (uint64_t)part % PARTS;

    if (replay->parts[at] != part) {
        memset(replay->keys[at], 0, sizeof(replay->keys[at]));
        replay->parts[at] = part;
    }
    *ret_count = 0;
    for (size_t i = 0; i < PARTS; i++)
        if (part - replay->parts[i] < PARTS)
            *ret_count += replay->keys[i][key];
    return &replay->keys[at][key];
}

static int replay_insert(struct http_replay *replay, struct bucket *bucket, uint64_t hash,
                         uint32_t fingerprint, struct aq_error *err)
{
    struct page *page = replay->count < replay->max ? replay_page_with_room(bucket) : NULL;

    if (!page)
        return aq_fail_kind(err, EAGAIN, "rate-limit-exceeded",
                            "Too many changes within 15 minutes; try again later");
    *replay_find_slot(page, hash, fingerprint) = fingerprint;
    page->count++;
    replay->count++;
    return 0;
}

int replay_check(struct http_replay *replay, const char *access_key, const uint8_t signature[32],
                 int64_t date_usec, int64_t now_usec, struct aq_error *err)
{
    int64_t second = date_usec / USEC_PER_SEC;
    struct bucket *bucket = &replay->buckets[(uint64_t)second % BUCKETS];
    uint64_t hash = aq_hash(signature, 32);
    uint32_t fingerprint = (uint32_t)hash ? (uint32_t)hash : 1, *own;
    size_t has;
    int r;

    if (date_usec <= now_usec - SIGN_WINDOW_USEC || date_usec >= now_usec + SIGN_WINDOW_USEC)
        return aq_fail_kind(err, EINVAL, "invalid-auth-params", "Date/time sync error");
    if (bucket->second != second) {
        replay_expire(replay, now_usec);
        replay_empty_bucket(replay, bucket);
        bucket->second = second;
    }
    for (struct page *page = bucket->newest; page; page = page->older)
        if (*replay_find_slot(page, hash, fingerprint))
            return aq_fail_kind(err, EEXIST, "auth-failed",
                                "This signed request was already made; sign it again");
    own = replay_find_count(replay, access_key, second, &has);
    if (has > (replay->max - replay->count) / 2)
        return aq_fail_kind(err, EAGAIN, "rate-limit-exceeded",
                            "%zu changes by this key within 15 minutes; try again later", has);
    r = replay_insert(replay, bucket, hash, fingerprint, err);
    *own += r == 0;
    return r;
}
