/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - numbers as ECMAScript writes them, for messages */
#ifndef AQ_GRAPHQL_NUMBER_H
#define AQ_GRAPHQL_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#define NUMBER_TEXT_MAX 32

/* Number::toString() of ECMA-262: "3", "0.000001", "1e+21", "Infinity". Returns 'buf'. */
char *number_format(double value, char buf[NUMBER_TEXT_MAX]);

/* Whether the value is a whole number that an int64_t holds. */
bool number_is_integer(double value, int64_t *ret);

#endif
