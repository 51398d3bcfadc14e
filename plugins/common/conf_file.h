/* SPDX-License-Identifier: Apache-2.0 */
/* conf_file.h - a plugin's settings file, all of it or none */
#ifndef AQ_PLUGINS_COMMON_CONF_FILE_H
#define AQ_PLUGINS_COMMON_CONF_FILE_H

#include "aliquot/accelerator.h"
#include "conf/conf.h"

/* Read host->config into 'target' (zeroed); only defaults if there is none. A
 * failure is told through 'out' with file, line and key.
 */
int conf_file_read(const struct aq_accelerator_host *host, const struct conf_item *items,
                   void *target, const struct aq_accelerator_out *out);

/* Tell through 'out' what a check of the settings has found wrong, and in which file. -EINVAL. */
int conf_file_refuse(const struct aq_accelerator_host *host, const struct aq_error *why,
                     const struct aq_accelerator_out *out);

#endif
