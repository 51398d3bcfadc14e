/* SPDX-License-Identifier: Apache-2.0 */
/* containers_conf.h - settings of this node that skopeo follows and aliquot-fetch does not
 *
 * Proxies, mirrors and other rewritten names, credential helpers, certificates of single
 * registries.
 */
#ifndef AQ_AGENT_IMAGE_CONTAINERS_CONF_H
#define AQ_AGENT_IMAGE_CONTAINERS_CONF_H

#include <stdbool.h>

#include "base/error.h"

/* 0 if none of them may concern the registry; else -ENOTSUP, and 'err' names the setting.
 * 'is_login_given': an auth file was named, so those of the user are not looked for.
 */
int containers_conf_check(const char *registry, bool is_login_given, struct aq_error *err);

/* Whether a registries.conf (containers-registries.conf(5)) has a table of registries or credential
 * helpers. 'text' is NUL-terminated.
 */
bool containers_conf_has_registries(const char *text);

#endif
