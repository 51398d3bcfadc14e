/* SPDX-License-Identifier: Apache-2.0 */
/* dotfile_rules.h - what may be a dotfile
 *
 * Pure.
 */
#ifndef AQ_MANAGER_TEMPLATE_DOTFILE_RULES_H
#define AQ_MANAGER_TEMPLATE_DOTFILE_RULES_H

#include "base/error.h"

/* -EINVAL, field "path", if it is not below the home directory, or reserved. */
int dotfile_check_path(const char *path, struct aq_error *err);

/* -EINVAL, field "permission", if it is not such as "644". */
int dotfile_check_permission(const char *permission, struct aq_error *err);

#endif
