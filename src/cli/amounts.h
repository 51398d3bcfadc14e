/* SPDX-License-Identifier: Apache-2.0 */
/* amounts.h - amounts of resources that users type */
#ifndef AQ_CLI_AMOUNTS_H
#define AQ_CLI_AMOUNTS_H

#include <jansson.h>

#include "base/error.h"

/* "SLOT=AMOUNT[,SLOT=AMOUNT]..." into the object; the manager knows slots and units. With 'option',
 * such as "--resource-opts", they are "NAME=VALUE" of it.
 */
int cli_amounts_add(const char *text, const char *option, json_t *object, struct aq_error *err);

#endif
