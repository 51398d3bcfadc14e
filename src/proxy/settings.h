/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - proxy.toml */
#ifndef AQ_PROXY_SETTINGS_H
#define AQ_PROXY_SETTINGS_H

#include "conf/conf.h"

struct settings {
    struct conf_listen listen, manager;
    char *name, *state, *public_url, *domain, *ports, *log_level;
    uint16_t port_min, port_max; /* of 'ports'; 0 = none */
    char *tls_cert, *tls_key;
    bool insecure;
    int64_t cookie_usec, connections_max, wait_usec;
    char *metrics_listen, *metrics_tls_cert, *metrics_tls_key;
    bool metrics_insecure;
};

extern const struct conf_item settings_items[];

/* 'file' NULL = the usual one, which may be missing; 'state', 'listen' NULL = as it says. The
 * public URL is filled in. settings_done() only after success.
 */
int settings_load(const char *file, const char *state, const char *listen, struct settings *ret,
                  struct aq_error *err);
void settings_done(struct settings *settings);
/* Do browsers reach it by https, if only at a server in front? */
bool settings_is_https(const struct settings *settings);

#endif
