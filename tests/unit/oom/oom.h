/* SPDX-License-Identifier: Apache-2.0 */
/* oom.h - every allocation of a scenario fails once
 *
 * A scenario runs again and again in a process of its own, each time with
 * another of its allocations failing: that one alone, or it and all that
 * follow. Only calls from our own code and jansson's count: the linker wraps
 * them (meson.build), libraries keep their memory. What arenas give counts too,
 * although they rarely ask for more.
 *
 * A run is right if it ends by oom_pass(), which looks for leaks, or as
 * core_die() does; then 'recover' looks at what it left.
 */
#ifndef AQ_TESTS_UNIT_OOM_OOM_H
#define AQ_TESTS_UNIT_OOM_OOM_H

#include <stdbool.h>

#include "base/error.h"

struct oom_scenario {
    const char *name;
    /* All three get an empty directory or what prepare() left there. */
    void (*prepare)(const char *dir); /* once, before all runs; NULL = nothing */
    void (*run)(const char *dir);
    void (*recover)(const char *dir); /* after core_die(); NULL = that is a failure */
};

/* From here on allocations count, and one fails. */
void oom_begin(void);
/* No longer. */
void oom_end(void);
/* No allocation counts, or they do again: what the test itself does. */
void oom_pause(bool on);
/* What this thread allocates now stays for as long as the process: it is no leak. */
void oom_keep(bool on);
/* The run's one allocation, or the first of many, has failed. */
bool oom_has_failed(void);
/* The run went well: whatever it allocated after oom_begin() is free again. Ends the process. */
void oom_pass(void) __attribute__((noreturn));
/* Fail unless 'r' is 0 or the error of memory that there is not. */
void oom_check(const char *what, int r, const struct aq_error *err);

/* Walk through all scenarios; main()'s result. By default one allocation for each
 * way by which the code came to it, alone, and each eighth with all that follow. A way
 * is the innermost calls, and is walked in the first scenario that takes it: that ends
 * within a minute. In the environment, AQ_OOM=ways: in each scenario, each different
 * whole stack of calls, both alone and with all that follow; AQ_OOM=all: each allocation, the same;
 * AQ_OOM=<number>: this one. AQ_OOM_MOST: how many failures end the walk (10).
 * AQ_OOM_SITES=<file>: nothing fails, and the file gets the return addresses of the calls that
 * allocate, as addr2line(1) takes them; unreached.py compares them with the calls that there are.
 */
int oom_main(const struct oom_scenario *scenarios, int count);

#endif
