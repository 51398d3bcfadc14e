/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - proxy.toml */
#ifndef AQ_PROXY_SETTINGS_H
#define AQ_PROXY_SETTINGS_H

#include "front/settings.h"

struct settings {
    struct front_settings common;
    char *domain, *ports, *run;
    uint16_t port_min, port_max; /* of 'ports'; 0 = none */
    int64_t user_ports_max;      /* of one user; settings_finish() makes 0 a share of 'ports' */
    int64_t cookie_usec, wait_usec;
};

extern const struct conf_item settings_items[];

/* front_type.finish() */
int settings_finish(void *settings, struct aq_error *err);

#endif
