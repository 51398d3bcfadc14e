/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - one setting from text into its place, inside this layer */
#ifndef AQ_CONF_VALUE_H
#define AQ_CONF_VALUE_H

#include "conf/conf.h"

/* Free and zero one item. */
void conf_clear(const struct conf_item *item, void *target);

/* "section.key", or "key" at the top level, cut to fit err->field. */
void conf_item_name(const struct conf_item *item, char *buf, size_t size);

/* What a value of this type looks like: "a duration like \"30s\"". */
const char *conf_type_hint(enum conf_type type);

#endif
