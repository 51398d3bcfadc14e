/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - does the machine have what a manager needs? For "aliquot doctor" */
#ifndef AQ_MANAGER_CHECK_H
#define AQ_MANAGER_CHECK_H

#include "manager/conf.h"

/* Write the findings about the named parts (count 0 = all) to standard output
 * (check/check.h). Whatever is missing is no error.
 */
int manager_check(const struct manager_conf *conf, char *const *parts, int count,
                  struct aq_error *err);

#endif
