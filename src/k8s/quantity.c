/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.c - see quantity.h */
#include "k8s/quantity.h"

#include <string.h>

#define DIGITS "0123456789"

/* By which power of ten or 1024 what follows the digits multiplies; false if it is nothing known.
 */
static bool quantity_read_suffix(const char *suffix, int *ret_base, int *ret_power)
{
    static const char binary[] = "KMGTPE", decimal[] = "kMGTPE";
    const char *found;

    *ret_base = 10;
    *ret_power = 0;
    if (!suffix[0])
        return true;
    if (suffix[1] == 'i' && !suffix[2] && (found = strchr(binary, suffix[0]))) {
        *ret_base = 1024;
        *ret_power = (int)(found - binary) + 1;
    } else if (!suffix[1] && (found = strchr(decimal, suffix[0]))) {
        *ret_power = 3 * ((int)(found - decimal) + 1);
    } else if (!suffix[1] && suffix[0] == 'm') {
        *ret_power = -3;
    } else if ((suffix[0] == 'e' || suffix[0] == 'E') && strlen(suffix) == 2
               && strchr(DIGITS, suffix[1])) {
        *ret_power = suffix[1] - '0';
    } else {
        return false;
    }
    return true;
}

bool quantity_read(const json_t *value, int64_t *ret)
{
    const char *text = json_string_value(value);
    size_t whole = text ? strspn(text, DIGITS) : 0;
    size_t rest = text && text[whole] == '.' ? strspn(text + whole + 1, DIGITS) : 0;
    size_t len = whole + (rest ? rest + 1 : 0);
    int64_t number = 0;
    int base, power;

    if (json_is_integer(value)) {
        *ret = json_integer_value(value);
        return *ret >= 0 && *ret <= QUANTITY_MAX;
    }
    if (!whole || len > 18 || !quantity_read_suffix(text + len, &base, &power)
        || (rest && base != 10))
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] != '.')
            number = number * 10 + (text[i] - '0');
    for (power -= (int)rest; power < 0; power++, number /= 10)
        if (number % 10)
            return false;
    for (; power > 0 && number; power--, number *= base)
        if (number > QUANTITY_MAX / base)
            return false;
    *ret = number;
    return number <= QUANTITY_MAX;
}
