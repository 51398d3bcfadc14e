/* SPDX-License-Identifier: Apache-2.0 */
/* testing.h - cmocka with its prerequisites, and a few helpers for all unit tests */
#ifndef AQ_TESTS_UNIT_TESTING_H
#define AQ_TESTS_UNIT_TESTING_H

/* cmocka.h wants these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* The row number in a table-driven failure: fails with the row's name. */
#define assert_row(cond, ...)         \
    do {                              \
        if (!(cond)) {                \
            print_error("row: ");     \
            print_error(__VA_ARGS__); \
            print_error("\n");        \
            fail_msg("%s", #cond);    \
        }                             \
    } while (0)

#endif
