/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - does the machine have what a proxy needs? For "aliquot doctor" */
#ifndef AQ_PROXY_CHECK_H
#define AQ_PROXY_CHECK_H

#include "check/check.h"

/* front_type.checks */
extern const struct check proxy_checks[];

#endif
