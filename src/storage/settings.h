/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - storage.toml */
#ifndef AQ_STORAGE_SETTINGS_H
#define AQ_STORAGE_SETTINGS_H

#include "front/settings.h"

#define STORAGE_VOLUMES_MAX 64

struct settings {
    struct front_settings common;
    struct conf_list volumes; /* "NAME:PATH"; after settings_finish() at least one */
    int64_t token_usec, upload_usec, transfers_max;
};

extern const struct conf_item settings_items[];

/* front_type.finish() */
int settings_finish(void *settings, struct aq_error *err);

/* Is a path in the state folder, where it is ours to make? */
bool settings_is_own(const struct settings *settings, const char *path);

/* The path in an item of 'volumes'. */
const char *settings_volume_path(const char *item);

/* The file in the state folder that says that the volume has been there; free(). */
char *settings_volume_seen(const struct settings *settings, const char *item);

#endif
