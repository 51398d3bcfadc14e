/* SPDX-License-Identifier: Apache-2.0 */
/* path_rule.h - is a path within the prefixes that a token may ask for?
 *
 * Servers differ in how they read "..", "//", backslashes, parameters of a segment and encoded
 * separators. A path that two of them could take for different ones is within no prefix. Pure.
 */
#ifndef AQ_SERVING_PATH_RULE_H
#define AQ_SERVING_PATH_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/lists.h"

#define PATH_RULE_MAX 4096 /* bytes of a path; a longer one is within no prefix */

/* 'target' is "/path?query". The prefix "/v1" holds "/v1" and "/v1/x", not "/v1x"; "/v1/" holds what
 * begins with it.
 */
bool path_rule_allows(const struct str_list *prefixes, const char *target) AQ_UNTRUSTED;

#endif
