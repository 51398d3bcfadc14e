/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_limits.h - system calls that containers get less of than the node's profile allows */
#ifndef AQ_AGENT_RUNTIME_SECCOMP_LIMITS_H
#define AQ_AGENT_RUNTIME_SECCOMP_LIMITS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

/* Replace what the rules of a profile (seccomp.json(5)) that hold on this node allow of these
 * calls by less of it; what they do not allow stays as it is. With 'may_nest' namespaces stay
 * allowed (also on s390x, where clone(2) has its flags elsewhere). -ENOMEM.
 */
int seccomp_limits_add(json_t *rules, bool may_nest, struct aq_error *err);

#endif
