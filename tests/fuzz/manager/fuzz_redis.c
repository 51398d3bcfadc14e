/* SPDX-License-Identifier: Apache-2.0 */
/* What a Redis server says, in pieces, and what it has kept; and its URI. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "manager/redis/redis_feature.h"
#include "redis/redis_uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check_item(const struct redis_reply *reply, unsigned depth)
{
    require(depth <= REDIS_DEPTH_MAX);
    if (reply->text)
        require(reply->text[reply->len] == '\0');
    for (size_t i = 0; i < reply->count; i++)
        check_item(&reply->items[i], depth + 1);
}

/* A part of a reply asks for more, or is refused with the same error as the whole. */
static void check_reply(const char *bytes, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct redis_reply reply;
    struct aq_error err = { 0 };
    ssize_t used = redis_reply_read(bytes, size, &arena, &reply, &err), part;

    require(used <= (ssize_t)size && (used >= 0 || err.text[0]));
    if (used > 0)
        check_item(&reply, 0);
    require(arena.used <= 64 * size + 4096);
    if (used == 0)
        return;
    part = redis_reply_read(bytes, used > 0 ? (size_t)used - 1 : size - 1, &arena, &reply, NULL);
    require(part == 0 || part == used);
}

static void on_record(void *data, const char *access_key, const uint8_t signature[32],
                      unsigned second)
{
    size_t *count = data;

    require(access_key[0] && strlen(access_key) <= SIGN_KEY_MAX && second < 60);
    require(memcmp(signature, signature, 32) == 0);
    ++*count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct redis_place place;
    size_t count = 0;
    char *text;
    ssize_t used;

    if (!size || !(text = malloc(size + 1)))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_reply(text, size);
    used = redis_signatures_read(text, size, on_record, &count);
    require(used <= (ssize_t)size && count <= size / 35);
    if (redis_uri_parse(text, &arena, &place, NULL) == 0)
        require(place.count && place.count <= REDIS_SENTINELS_MAX && place.db <= REDIS_DB_MAX
                && (place.has_sentinels ? place.service[0] : place.count == 1));
    free(text);
    return 0;
}
