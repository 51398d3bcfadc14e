/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - does the machine have what a web server needs? For "aliquot doctor" */
#ifndef AQ_WEB_CHECK_H
#define AQ_WEB_CHECK_H

#include "check/check.h"

/* front_type.checks */
extern const struct check web_checks[];

#endif
