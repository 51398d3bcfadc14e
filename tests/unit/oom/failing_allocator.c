/* SPDX-License-Identifier: Apache-2.0 */
/* failing_allocator.c - see failing_allocator.h */
#include "failing_allocator.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "oom.h"

#define DEEP_FRAMES 40

static struct failing_plan plan;
static struct failing_record *recording;
static atomic_long calls;
static atomic_bool is_armed, has_failed;
static atomic_int paused;
static _Thread_local bool keeps; /* what this thread allocates now is never given back */

/* ---- what is allocated ---- */

#define SLOT_BITS 16
#define SLOTS (1u << SLOT_BITS)

static struct {
    void *at;
    long call;
    size_t size;
} slots[SLOTS];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_tracking;

static size_t slot_of(const void *p)
{
    return ((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS);
}

static void note(void *p, long call, size_t size)
{
    size_t i = slot_of(p);

    if (!p || !is_tracking || keeps)
        return;
    pthread_mutex_lock(&slots_lock);
    while (slots[i].at && slots[i].at != (void *)-1)
        i = (i + 1) % SLOTS;
    slots[i].at = p;
    slots[i].call = call;
    slots[i].size = size;
    pthread_mutex_unlock(&slots_lock);
}

static void unnote(const void *p)
{
    if (!p || !is_tracking)
        return;
    pthread_mutex_lock(&slots_lock);
    for (size_t i = slot_of(p); slots[i].at; i = (i + 1) % SLOTS)
        if (slots[i].at == p) {
            slots[i].at = (void *)-1;
            break;
        }
    pthread_mutex_unlock(&slots_lock);
}

/* ---- the allocator ---- */

static void tell_stack(const char *what, long call)
{
    void *frames[DEEP_FRAMES];
    char line[80];
    int count = backtrace(frames, DEEP_FRAMES),
        len = snprintf(line, sizeof(line), "%s %ld:\n", what, call);

    (void)!write(STDERR_FILENO, line, (size_t)len);
    backtrace_symbols_fd(frames + 2, count - 2, STDERR_FILENO);
}

/* Not inlined: what calls it twice removed is the allocation. */
__attribute__((noinline)) static void record(long call)
{
    void *frames[DEEP_FRAMES];
    int count = backtrace(frames, AQ_MIN(DEEP_FRAMES, 2 + plan.frames));
    uint64_t stack = UINT64_C(0xcbf29ce484222325);

    for (int i = 2; i < count; i++)
        stack = (stack ^ (uintptr_t)frames[i]) * UINT64_C(0x100000001b3);
    pthread_mutex_lock(&slots_lock);
    for (long i = 0; i < recording->site_count; i++)
        if (recording->sites[i].stack == stack) {
            pthread_mutex_unlock(&slots_lock);
            return;
        }
    if (recording->site_count < FAILING_SITES_MAX) {
        struct failing_site *site = &recording->sites[recording->site_count++];

        *site = (struct failing_site){ .stack = stack, .call = call };
        for (int i = 0; i < FAILING_CALLERS && 3 + i < count; i++)
            site->callers[i] = frames[3 + i];
    }
    pthread_mutex_unlock(&slots_lock);
}

/* Does this allocation fail? Its number is in *call, 0 = it does not count. */
__attribute__((noinline)) static bool fails(long *call)
{
    *call = 0;
    if (!atomic_load(&is_armed) || atomic_load(&paused))
        return false;
    *call = atomic_fetch_add(&calls, 1) + 1;
    if (plan.mode == FAILING_RECORD)
        record(*call);
    if (*call == plan.trace_at)
        tell_stack("leaked allocation", *call);
    if (plan.mode == FAILING_RECORD || *call < plan.fail_at
        || (plan.mode == FAILING_ONCE && *call > plan.fail_at))
        return false;
    if (*call == plan.fail_at)
        tell_stack("failed allocation", *call);
    atomic_store(&has_failed, true);
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void __real_free(void *p);
void *__real_arena_alloc(struct arena *arena, size_t size);
void *__real_arena_array(struct arena *arena, size_t count, size_t size);
char *__real_arena_strdup(struct arena *arena, const char *text);
char *__real_arena_strndup(struct arena *arena, const char *text, size_t len);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
void __wrap_free(void *p);
void *__wrap_arena_alloc(struct arena *arena, size_t size);
void *__wrap_arena_array(struct arena *arena, size_t count, size_t size);
char *__wrap_arena_strdup(struct arena *arena, const char *text);
char *__wrap_arena_strndup(struct arena *arena, const char *text, size_t len);

void *__wrap_malloc(size_t size)
{
    long call;
    void *p = fails(&call) ? NULL : __real_malloc(size);

    note(p, call, size);
    return p;
}

void *__wrap_calloc(size_t count, size_t size)
{
    long call;
    void *p = fails(&call) ? NULL : __real_calloc(count, size);

    note(p, call, count * size);
    return p;
}

void *__wrap_realloc(void *old, size_t size)
{
    long call;
    void *p;

    if (fails(&call))
        return NULL;
    unnote(old);
    p = __real_realloc(old, size);
    note(p, call, size);
    return p;
}

char *__wrap_strdup(const char *text)
{
    long call;
    char *p = fails(&call) ? NULL : __real_strdup(text);

    note(p, call, p ? strlen(p) + 1 : 0);
    return p;
}

char *__wrap_strndup(const char *text, size_t len)
{
    long call;
    char *p = fails(&call) ? NULL : __real_strndup(text, len);

    note(p, call, p ? strlen(p) + 1 : 0);
    return p;
}

void __wrap_free(void *p)
{
    unnote(p);
    __real_free(p);
}

void *__wrap_arena_alloc(struct arena *arena, size_t size)
{
    long call;

    return fails(&call) ? NULL : __real_arena_alloc(arena, size);
}

void *__wrap_arena_array(struct arena *arena, size_t count, size_t size)
{
    long call;

    return fails(&call) ? NULL : __real_arena_array(arena, count, size);
}

char *__wrap_arena_strdup(struct arena *arena, const char *text)
{
    long call;

    return fails(&call) ? NULL : __real_arena_strdup(arena, text);
}

char *__wrap_arena_strndup(struct arena *arena, const char *text, size_t len)
{
    long call;

    return fails(&call) ? NULL : __real_arena_strndup(arena, text, len);
}

/* Names of slots stay for as long as the process. */
const char *__real_slot_name_intern(const char *name, size_t len);
const char *__wrap_slot_name_intern(const char *name, size_t len);

const char *__wrap_slot_name_intern(const char *name, size_t len)
{
    const char *kept;

    keeps = true;
    kept = __real_slot_name_intern(name, len);
    keeps = false;
    return kept;
}

/* ---- one run ---- */

void failing_allocator_plan(const struct failing_plan *to, struct failing_record *record_to)
{
    plan = *to;
    recording = record_to;
}

void oom_begin(void)
{
    is_tracking = true;
    atomic_store(&is_armed, true);
}

void oom_end(void)
{
    atomic_store(&is_armed, false);
}

void oom_keep(bool on)
{
    keeps = on;
}

void oom_pause(bool on)
{
    (void)atomic_fetch_add(&paused, on ? 1 : -1);
}

bool oom_has_failed(void)
{
    return atomic_load(&has_failed);
}

void oom_pass(void)
{
    long lost = 0;

    oom_end();
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].at && slots[i].at != (void *)-1 && slots[i].call) {
            (void)fprintf(stderr, "leaked: allocation %ld of %zu bytes\n", slots[i].call,
                          slots[i].size);
            lost++;
        }
    recording->calls = atomic_load(&calls);
    (void)fflush(NULL);
    if (lost)
        _exit(3);
    if (FAILING_SANITIZED)
        exit(0);
    _exit(0);
}
