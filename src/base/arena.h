/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory that is released all at once
 *
 * For everything that lives as long as one request. Not for threads. Blocks
 * are kept by arena_clear() up to 'keep' bytes, so a reused arena rarely
 * calls malloc.
 *
 * What is asked for is there, unless the arena has a limit or the program has called
 * memory_recover().
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
    size_t limit;             /* arena_alloc gives NULL past this; 0 = none */
};

#define ARENA_INIT   \
    {                \
        .head = NULL \
    }

void arena_done(struct arena *arena);

/* Forget every allocation; keep one block of at most 'keep' bytes. */
void arena_clear(struct arena *arena, size_t keep);

/* Zeroed memory, aligned for any object; NULL past the limit. */
void *arena_alloc(struct arena *arena, size_t size);

/* 'count' zeroed objects; NULL also on overflow. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* Copy *item to the end of *items, a pointer to any object pointer: an array of the arena,
 * at first NULL, that only this lets grow. False, with nothing changed, past the limit.
 */
bool arena_append(struct arena *arena, void *items, size_t *count, const void *item, size_t size);

/* A NUL-terminated copy. */
char *arena_strndup(struct arena *arena, const char *text, size_t len);
char *arena_strdup(struct arena *arena, const char *text);

static inline void arena_donep(struct arena *arena)
{
    arena_done(arena);
}

#endif
