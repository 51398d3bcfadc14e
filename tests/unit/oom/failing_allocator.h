/* SPDX-License-Identifier: Apache-2.0 */
/* failing_allocator.h - an allocator that counts, fails as planned, and finds what leaks
 *
 * The linker puts it before our own code (meson.build). What a scenario calls
 * of it is in oom.h. Any thread may allocate; a plan is made before there are threads.
 */
#ifndef AQ_TESTS_UNIT_OOM_FAILING_ALLOCATOR_H
#define AQ_TESTS_UNIT_OOM_FAILING_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#define FAILING_SITES_MAX 65536
#define FAILING_CALLERS 12

#if defined(__SANITIZE_ADDRESS__)
#define FAILING_SANITIZED 1
#else
#define FAILING_SANITIZED 0
#endif

struct failing_plan {
    enum { FAILING_RECORD, FAILING_ONCE, FAILING_FOREVER } mode;
    long fail_at, trace_at; /* numbers of allocations, from 1; of the latter the stack is printed */
    int frames;             /* FAILING_RECORD: so many innermost calls make a site */
};

/* In memory that parent and child share. */
struct failing_record {
    long calls;
    long site_count;
    struct failing_site {
        uint64_t stack;                       /* hash of return addresses */
        long call;                            /* the first that came by it */
        const void *callers[FAILING_CALLERS]; /* its innermost return addresses, NULL = no more */
    } sites[FAILING_SITES_MAX];
};

/* For the process's next children; sites that the record has already are not added again. */
void failing_allocator_plan(const struct failing_plan *to, struct failing_record *record_to);

/* For jansson. */
void *__wrap_malloc(size_t size);
void __wrap_free(void *p);

#endif
