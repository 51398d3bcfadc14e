/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - does the machine have what a web server needs? For "aliquot doctor" */
#ifndef AQ_WEB_CHECK_H
#define AQ_WEB_CHECK_H

#include "base/error.h"

/* front_type.check() */
int web_check(const void *settings, char *const *parts, int count, struct aq_error *err);

#endif
