/* SPDX-License-Identifier: Apache-2.0 */
/* What a new password must be. */
#include "manager/account/password_rules.h"

#include <ctype.h>
#include <errno.h>

int password_rules_check(const struct password_rules *rules, const char *field,
                         const char *password, struct aq_error *err)
{
    int lower = 0, upper = 0, digit = 0, other = 0;
    int64_t length = 0;

    for (const unsigned char *at = (const unsigned char *)password; *at; at++) {
        length += (*at & 0xc0) != 0x80; /* else it goes on with a character of UTF-8 */
        if (islower(*at))
            lower = 1;
        else if (isupper(*at))
            upper = 1;
        else if (isdigit(*at))
            digit = 1;
        else
            other = 1;
    }
    if (length < rules->min_length)
        return aq_fail_as(err, EINVAL, "invalid-api-params", field,
                          "must have at least %lld characters", (long long)rules->min_length);
    if (lower + upper + digit + other < rules->classes)
        return aq_fail_as(err, EINVAL, "invalid-api-params", field,
                          "must have at least %lld of: lower case, upper case, digits, others",
                          (long long)rules->classes);
    return 0;
}
