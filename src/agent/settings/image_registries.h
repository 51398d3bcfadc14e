/* SPDX-License-Identifier: Apache-2.0 */
/* image_registries.h - the lists of [image] in agent.toml: allowed images, mirrors, registries without TLS
 */
#ifndef AQ_AGENT_SETTINGS_IMAGE_REGISTRIES_H
#define AQ_AGENT_SETTINGS_IMAGE_REGISTRIES_H

#include "agent/settings/settings.h"

/* Every value of allow, mirrors and insecure. -EINVAL with the key as field
 * ("image.mirrors") and the value in the text.
 */
int image_registries_check(const struct settings *settings, struct aq_error *err);

/* Append registries.conf (containers-registries.conf(5)) for mirrors and
 * registries without TLS; the lists have been checked. Nothing is appended if
 * both are empty.
 */
void image_registries_write(const struct settings *settings, struct strbuf *out);

#endif
