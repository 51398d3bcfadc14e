/* lists.h - the lists of [image] in agent.toml: what may run, mirrors, registries without TLS */
#ifndef AQ_AGENT_IMAGE_LISTS_H
#define AQ_AGENT_IMAGE_LISTS_H

#include "agent/settings.h"

/* Every value of allow, mirrors and insecure. -EINVAL with the key as field
 * ("image.mirrors") and the value in the text.
 */
int image_lists_check(const struct settings *settings, struct aq_error *err);

/* Append registries.conf (containers-registries.conf(5)) for mirrors and
 * registries without TLS; the lists have been checked. Nothing is appended if
 * both are empty.
 */
void image_lists_write(const struct settings *settings, struct strbuf *out);

#endif
