/* SPDX-License-Identifier: Apache-2.0 */
/* template_find.h - which template a client means
 *
 * For functions given to store_read() and store_write().
 */
#ifndef AQ_MANAGER_RULES_TEMPLATE_FIND_H
#define AQ_MANAGER_RULES_TEMPLATE_FIND_H

#include "store/template.h"

/* By id, or by name: own ones before those of projects. Administrators find by id what they may
 * see. -ENOENT (object-not-found), -EINVAL (invalid-api-params): the name does not tell which.
 */
int template_find(struct store_tx *tx, const struct folder_viewer *who, const char *text,
                  struct arena *arena, struct template_row *ret, struct aq_error *err);

#endif
