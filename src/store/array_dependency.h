/* SPDX-License-Identifier: Apache-2.0 */
/* array_dependency.h - the column depends_on of arrays */
#ifndef AQ_STORE_ARRAY_DEPENDENCY_H
#define AQ_STORE_ARRAY_DEPENDENCY_H

#include <stddef.h>

#include "model/dependency.h"

/* Read "CONDITION:TARGET" with blanks between them; NULL is none. The items are the caller's, also
 * after an error. -EUCLEAN.
 */
int array_parse_dependencies(const char *text, struct session_dependency **ret, size_t *ret_count);

#endif
