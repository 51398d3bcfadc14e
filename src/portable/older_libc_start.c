/* SPDX-License-Identifier: Apache-2.0 */
/* older_libc_start.c - the start of a program that older_libc.c is in */
#include "portable/older_libc.h"

typedef int (*main_fn)(int argc, char **argv, char **environment);
typedef void (*constructor_fn)(int argc, char **argv, char **environment);

extern int first___libc_start_main(main_fn program, int argc, char **argv, constructor_fn start,
                                   void (*end)(void), void (*loader_end)(void), void *stack_end);
extern int __libc_start_main(main_fn program, int argc, char **argv, constructor_fn start,
                             void (*end)(void), void (*loader_end)(void), void *stack_end);
FIRST(__libc_start_main);

extern constructor_fn __init_array_start[] HIDDEN, __init_array_end[] HIDDEN;

/* Up to glibc 2.33 every program brought this along. */
static void older_libc_start_run_constructors(int argc, char **argv, char **environment)
{
    for (constructor_fn *fn = __init_array_start; fn < __init_array_end; fn++)
        (*fn)(argc, argv, environment);
}

HIDDEN int __libc_start_main(main_fn program, int argc, char **argv, constructor_fn start,
                             void (*end)(void), void (*loader_end)(void), void *stack_end)
{
    (void)start;
    return first___libc_start_main(program, argc, argv, older_libc_start_run_constructors, end,
                                   loader_end, stack_end);
}
