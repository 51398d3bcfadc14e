/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - does the machine have what a storage host needs? For "aliquot doctor" */
#ifndef AQ_STORAGE_CHECK_H
#define AQ_STORAGE_CHECK_H

#include "check/check.h"

/* front_type.checks */
extern const struct check storage_checks[];

#endif
