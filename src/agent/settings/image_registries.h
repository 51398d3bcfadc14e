/* SPDX-License-Identifier: Apache-2.0 */
/* image_registries.h - the lists of [image] in agent.toml: allowed images, mirrors, registries
 * without TLS
 */
#ifndef AQ_AGENT_SETTINGS_IMAGE_REGISTRIES_H
#define AQ_AGENT_SETTINGS_IMAGE_REGISTRIES_H

#include "agent/settings/settings.h"
#include "model/reference.h"

/* Every value of allow, mirrors and insecure. -EINVAL with the key as field
 * ("image.mirrors") and the value in the text.
 */
int image_registries_check(const struct settings *settings, struct aq_error *err);

/* Registries that the settings name, mirrors included; 'port' 0 = as usual. Not docker.io,
 * IPv6 addresses and patterns: what they lead to is not known here.
 */
typedef void image_registries_fn(void *data, const char *host, uint16_t port);
void image_registries_each(const struct settings *settings, image_registries_fn *fn, void *data);

/* Append registries.conf (containers-registries.conf(5)) for mirrors and
 * registries without TLS; the lists have been checked. Nothing is appended if
 * both are empty.
 */
void image_registries_write(const struct settings *settings, struct strbuf *out);

/* Whether 'mirrors' or 'insecure' have an entry for the image, which is one of a registry. */
bool image_registries_has_mirror(const struct settings *settings, const struct reference *ref);
bool image_registries_may_lack_tls(const struct settings *settings, const struct reference *ref);

#endif
