/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - web.toml */
#ifndef AQ_WEB_SETTINGS_H
#define AQ_WEB_SETTINGS_H

#include "front/settings.h"

struct settings {
    struct front_settings common;
    struct conf_list api;             /* URLs of managers; after settings_finish() at least one */
    char *folder;                     /* of static files; NULL = the console alone */
    char *domain;                     /* of who logs in */
    struct conf_list allowed_origins; /* whose pages may use it, beside its own */
    struct conf_list trusted_proxies; /* as address_normalize() writes them */
    struct conf_list hidden_pages;    /* of the WebUI */
    int64_t login_usec;
};

extern const struct conf_item settings_items[];

/* front_type.finish() */
int settings_finish(void *settings, struct aq_error *err);

#endif
