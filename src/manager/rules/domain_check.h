/* SPDX-License-Identifier: Apache-2.0 */
/* domain_check.h - what a client is told whose domain is no longer there
 *
 * Writes that name a domain fail with -EBUSY and the field "domain" if it was renamed or removed
 * after the request had been checked (store_check_domain()).
 */
#ifndef AQ_MANAGER_RULES_DOMAIN_CHECK_H
#define AQ_MANAGER_RULES_DOMAIN_CHECK_H

#include "base/error.h"

/* Make that failure the problem "conflict". Returns 'r'. */
int domain_check(int r, struct aq_error *err);

#endif
