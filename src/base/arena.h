/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory that is released all at once
 *
 * For everything that lives as long as one request. Not for threads. Blocks
 * are kept by arena_clear() up to 'keep' bytes, so a reused arena rarely
 * calls malloc.
 *
 * Memory is there, unless the program has called memory_recover(): then NULL.
 *
 * A limit refuses no allocation. Work whose size a client chooses asks arena_is_over() between its
 * steps, and arena_has_room() before a step that allocates for as many objects as there are; so the
 * arena exceeds its limit by the largest other step at most.
 */
#ifndef AQ_BASE_ARENA_H
#define AQ_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct arena_block;

struct arena {
    struct arena_block *head; /* the block in use */
    size_t used;              /* bytes handed out since the last clear */
    size_t limit;             /* for the two functions below; 0 = none */
    bool had_no_room;         /* arena_has_room() was false once */
};

#define ARENA_INIT   \
    {                \
        .head = NULL \
    }

void arena_done(struct arena *arena);

/* Forget every allocation; keep one block of at most 'keep' bytes. */
void arena_clear(struct arena *arena, size_t keep);

/* Zeroed memory, aligned for any object. */
void *arena_alloc(struct arena *arena, size_t size);

/* 'count' zeroed objects; a product that overflows is more memory than there is. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* Copy *item to the end of *items, a pointer to any object pointer: an array of the arena,
 * at first NULL, that only this lets grow. False, with nothing changed, without memory.
 */
bool arena_append(struct arena *arena, void *items, size_t *count, const void *item, size_t size);

/* A NUL-terminated copy. */
char *arena_strndup(struct arena *arena, const char *text, size_t len);
char *arena_strdup(struct arena *arena, const char *text);

/* Whether more was handed out than the limit allows, or would have been. */
static inline bool arena_is_over(const struct arena *arena)
{
    return arena->had_no_room || (arena->limit && arena->used > arena->limit);
}

/* Whether 'count' objects of 'size' bytes, which is not 0, stay within the limit; if not, the arena
 * is over from then on.
 */
static inline bool arena_has_room(struct arena *arena, size_t count, size_t size)
{
    if (!arena_is_over(arena) && arena->limit)
        arena->had_no_room = count > (arena->limit - arena->used) / size;
    return !arena_is_over(arena);
}

static inline void arena_donep(struct arena *arena)
{
    arena_done(arena);
}

#endif
