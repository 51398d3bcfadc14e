/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - memory that is released all at once */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#define FIRST_BLOCK 4096

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    alignas(max_align_t) unsigned char data[];
};

void arena_done(struct arena *arena)
{
    arena_clear(arena, 0);
}

void arena_clear(struct arena *arena, size_t keep)
{
    struct arena_block *kept = NULL, *next;

    for (struct arena_block *b = arena->head; b; b = next) {
        next = b->next;
        if (!kept && b->size <= keep)
            kept = b;
        else
            free(b);
    }
    if (kept) {
        kept->next = NULL;
        kept->used = 0;
        /* A use after the clearing is as wrong as one after free(): let the sanitizer say so. */
        ASAN_POISON_MEMORY_REGION(kept->data, kept->size);
    }
    arena->head = kept;
    arena->used = 0;
    arena->had_no_room = false;
}

static struct arena_block *arena_add_block(struct arena *arena, size_t size)
{
    size_t want = arena->head ? arena->head->size * 2 : FIRST_BLOCK;
    struct arena_block *b;

    if (want > 1u << 20)
        want = 1u << 20;
    if (want < size)
        want = size;
    b = malloc(sizeof(*b) + want);
    if (!b) {
        memory_is_short();
        return NULL;
    }
    b->size = want;
    b->used = 0;
    b->next = arena->head;
    arena->head = b;
    return b;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    struct arena_block *b = arena->head;
    size_t rounded;
    void *p;

    if (size > SIZE_MAX / 2) {
        memory_is_short();
        return NULL;
    }
    rounded = (size + align - 1) & ~(align - 1);
    if (!b || b->size - b->used < rounded)
        b = arena_add_block(arena, rounded);
    if (!b)
        return NULL;
    p = b->data + b->used;
    ASAN_UNPOISON_MEMORY_REGION(p, rounded);
    b->used += rounded;
    arena->used += rounded;
    return memset(p, 0, rounded);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    return arena_alloc(arena, size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
}

/* An array whose 'count' is 0 or a power of two is full, and moves to twice the room. */
bool arena_append(struct arena *arena, void *items, size_t *count, const void *item, size_t size)
{
    char *array;

    memcpy(&array, items, sizeof(array));
    if ((*count & (*count - 1)) == 0) {
        char *grown = arena_array(arena, *count ? *count * 2 : 1, size);

        if (!grown)
            return false;
        if (*count)
            memcpy(grown, array, *count * size);
        memcpy(items, &grown, sizeof(grown));
        array = grown;
    }
    memcpy(array + (*count)++ * size, item, size);
    return true;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    char *copy = arena_alloc(arena, len + 1);

    if (copy && len)
        memcpy(copy, text, len);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}
