/* SPDX-License-Identifier: Apache-2.0 */
/* domain_check.c - what a client is told whose domain is no longer there */
#include "manager/rules/domain_check.h"

#include <errno.h>
#include <string.h>

int domain_check(int r, struct aq_error *err)
{
    if (r == -EBUSY && err && strcmp(err->field, "domain") == 0)
        err->kind = "conflict";
    return r;
}
