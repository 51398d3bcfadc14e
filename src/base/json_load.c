/* SPDX-License-Identifier: Apache-2.0 */
/* json_load.c - read and write JSON, and say so if memory is short */
#include "base/json_load.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The lexer's buffer doubles from 16 bytes on. If it cannot, it gets the first sizes of that
 * from here: that a number's digit was lost is an assertion of jansson's.
 */
#define RESERVE_BYTES 2048
#define GROWTH_MIN 32

static _Thread_local struct {
    bool is_loading, was_short;
    size_t used;
    _Alignas(max_align_t) char reserve[RESERVE_BYTES];
} state;

static void *json_load_take_reserve(size_t size)
{
    void *p = state.reserve + state.used;
    bool is_growth = size >= GROWTH_MIN && (size & (size - 1)) == 0;

    if (!is_growth || size > RESERVE_BYTES - state.used)
        return NULL;
    state.used += size;
    return p;
}

static void *json_load_alloc(size_t size)
{
    void *p = malloc(size);

    if (p)
        return p;
    memory_is_short();
    if (!state.is_loading)
        return NULL;
    state.was_short = true;
    return json_load_take_reserve(size);
}

static void json_load_release(void *p)
{
    if (state.used == 0 || (char *)p < state.reserve || (char *)p >= state.reserve + RESERVE_BYTES)
        free(p);
}

static void __attribute__((constructor)) json_load_set_allocator(void)
{
    json_set_alloc_funcs(json_load_alloc, json_load_release);
}

static void json_load_begin(void)
{
    state.was_short = false;
    state.is_loading = true;
}

json_t *json_load_text(const char *text, size_t len, size_t flags, json_error_t *ret_error)
{
    json_t *parsed;

    json_load_begin();
    parsed = json_loadb(text, len, flags, ret_error);
    state.is_loading = false;
    if (parsed && state.was_short) {
        json_decref(parsed);
        parsed = NULL;
    }
    state.used = 0; /* nothing of it is left */
    if (!parsed)
        errno = state.was_short ? ENOMEM : 0;
    return parsed;
}

char *json_dump_text(const json_t *value, size_t flags)
{
    char *text;

    json_load_begin();
    text = json_dumps(value, flags);
    state.is_loading = false;
    if (text && state.was_short) {
        json_load_release(text);
        text = NULL;
    }
    state.used = 0;
    return text;
}

json_t *json_load_string(const char *text, size_t flags)
{
    errno = 0;
    return text ? json_load_text(text, strlen(text), flags, NULL) : NULL;
}
