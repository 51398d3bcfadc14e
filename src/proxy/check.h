/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - does the machine have what a proxy needs? For "aliquot doctor" */
#ifndef AQ_PROXY_CHECK_H
#define AQ_PROXY_CHECK_H

#include "base/error.h"

/* front_type.check() */
int proxy_check(const void *settings, char *const *parts, int count, struct aq_error *err);

#endif
