/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as ECMAScript writes them, for messages. */
#include "graphql/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool number_is_integer(double value, int64_t *ret)
{
    if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)
        || floor(value) != value)
        return false;
    *ret = (int64_t)value;
    return true;
}

/* The fewest decimal digits that read back as 'value' (finite, above 0), and
 * the exponent n so that the value is 0.digits times ten to the n.
 */
static int number_shortest_digits(double value, char digits[18], int *ret_exponent)
{
    char text[32];
    int count = 0;

    for (int precision = 0; precision < 17; precision++) {
        (void)snprintf(text, sizeof(text), "%.*e", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    for (const char *p = text; *p != 'e'; p++)
        if (*p != '.')
            digits[count++] = *p;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    *ret_exponent = atoi(strchr(text, 'e') + 1) + 1;
    return count;
}

char *number_format(double value, char buf[NUMBER_TEXT_MAX])
{
    char digits[18];
    const char *sign = value < 0 ? "-" : "";
    int count, n;

    if (!isfinite(value)) {
        (void)snprintf(buf, NUMBER_TEXT_MAX, "%s%s", sign, isnan(value) ? "NaN" : "Infinity");
        return buf;
    }
    if (value == 0)
        return strcpy(buf, "0");
    count = number_shortest_digits(fabs(value), digits, &n);
    if (count <= n && n <= 21)
        (void)snprintf(buf, NUMBER_TEXT_MAX, "%s%.*s%.*s", sign, count, digits, n - count,
                       "000000000000000000000");
    else if (0 < n && n <= 21)
        (void)snprintf(buf, NUMBER_TEXT_MAX, "%s%.*s.%.*s", sign, n, digits, count - n, digits + n);
    else if (-6 < n && n <= 0)
        (void)snprintf(buf, NUMBER_TEXT_MAX, "%s0.%.*s%.*s", sign, -n, "000000", count, digits);
    else
        (void)snprintf(buf, NUMBER_TEXT_MAX, "%s%c%s%.*se%+d", sign, digits[0],
                       count > 1 ? "." : "", count - 1, digits + 1, n - 1);
    return buf;
}
