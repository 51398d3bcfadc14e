/* SPDX-License-Identifier: Apache-2.0 */
/* password_rules.h - what a new password must be, and how long it may be used
 *
 * The settings of [auth]. Pure.
 */
#ifndef AQ_MANAGER_ACCOUNT_PASSWORD_RULES_H
#define AQ_MANAGER_ACCOUNT_PASSWORD_RULES_H

#include <stdint.h>

#include "base/error.h"

struct password_rules {
    int64_t min_length;   /* characters */
    int64_t classes;      /* of lower case, upper case, digits and others, at least so many */
    int64_t max_age_usec; /* 0 = forever */
};

/* -EINVAL (invalid-api-params) names 'field' and what is missing. */
int password_rules_check(const struct password_rules *rules, const char *field,
                         const char *password, struct aq_error *err);

#endif
