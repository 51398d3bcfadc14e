/* SPDX-License-Identifier: Apache-2.0 */
/* filter_program.h - a filter as steps in postfix order, for rows in memory */
#ifndef AQ_STORE_FILTER_PROGRAM_H
#define AQ_STORE_FILTER_PROGRAM_H

#include "store/filter.h"

enum filter_operator {
    FILTER_EQUAL,
    FILTER_UNEQUAL,
    FILTER_ABOVE,
    FILTER_ABOVE_OR_EQUAL,
    FILTER_BELOW,
    FILTER_BELOW_OR_EQUAL,
    FILTER_LIKE,
    FILTER_ILIKE,
    FILTER_CONTAINS,
    FILTER_IN,
    FILTER_IS_NULL,
    FILTER_IS_NOT_NULL,
    /* of what the steps before gave */
    FILTER_NOT,
    FILTER_AND,
    FILTER_OR,
};

struct filter_step {
    enum filter_operator op;
    const struct filter_field *field;
    size_t first, count; /* of the values */
};

#define FILTER_STEPS_MAX 1000
struct filter_program {
    struct filter_values values;
    struct filter_step steps[FILTER_STEPS_MAX];
    size_t count;
};

#endif
