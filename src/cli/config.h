/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - where the manager is and who is asking
 *
 * Each setting comes from the first of: command-line option, ALIQUOT_*
 * variable, BACKEND_* variable, profile, default. The origin is kept, so that
 * "aliquot config show" can tell.
 */
#ifndef AQ_CLI_CONFIG_H
#define AQ_CLI_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

enum cli_setting {
    SETTING_ENDPOINT,
    SETTING_ACCESS_KEY,
    SETTING_SECRET_KEY,
    SETTING_DOMAIN,
    SETTING_GROUP,
    SETTING_RESOURCE_GROUP,
    SETTING_IMAGE,
    SETTING_CA_FILE,
    SETTING_SKIP_VERIFY,
    SETTING_CONNECT_TIMEOUT,
    SETTING_READ_TIMEOUT,
    SETTING_COUNT
};

struct cli_setting_info {
    const char *key;         /* in the profile and in "config show" */
    const char *env;         /* "ALIQUOT_ENDPOINT" */
    const char *backend_env; /* "BACKEND_ENDPOINT" or NULL */
    const char *fallback;    /* the default or NULL */
    const char *meaning;
    bool is_secret;
};
extern const struct cli_setting_info cli_settings[SETTING_COUNT];

struct cli_config {
    char *values[SETTING_COUNT];        /* NULL = not set */
    const char *origins[SETTING_COUNT]; /* static text or the variable's name */
    char *profile;                      /* its name */
    char *path;                         /* of the file of profiles */
    bool is_chosen;                     /* by --profile or ALIQUOT_PROFILE */
};

/* Read everything. 'endpoint' and 'profile' are the options' values or NULL. */
int cli_config_load(struct cli_config *config, const char *endpoint, const char *profile,
                    struct aq_error *err);
void cli_config_done(struct cli_config *config);

static inline const char *cli_config_get(const struct cli_config *config, enum cli_setting s)
{
    return config->values[s];
}

/* The same without the default, which is not sent where the manager has a better one; NULL. */
const char *cli_config_get_chosen(const struct cli_config *config, enum cli_setting s);

/* All profiles as the file has them: an object of objects of settings, the caller's. */
int cli_profiles_read(const struct cli_config *config, json_t **ret, struct aq_error *err);

/* -ENOENT, with the names that there are, if --profile or ALIQUOT_PROFILE names a profile that is
 * not in the file.
 */
int cli_profile_check(const struct cli_config *config, struct aq_error *err);

/* Make the profile the one that is used without --profile and ALIQUOT_PROFILE; -ENOENT, with the
 * names that there are.
 */
int cli_profile_use(const struct cli_config *config, const char *name, struct aq_error *err);

/* Remove it; -ENOENT likewise. If it was the one in use, none is. */
int cli_profile_remove(const struct cli_config *config, const char *name, struct aq_error *err);

/* Take this profile, which may not be there yet, from now on: its settings in place of those of the
 * other, but for the endpoint, which stays. -errno as cli_config_load().
 */
int cli_profile_switch(struct cli_config *config, const char *name, struct aq_error *err);

/* Change settings of the profile 'config->profile' in the file, and use it from now on: an object
 * of keys from cli_settings[], null takes one out. The others stay. The file has mode 0600 and is
 * replaced whole; changes by several programs at once come one after the other.
 */
int cli_profile_change(const struct cli_config *config, const json_t *changes,
                       struct aq_error *err);

#endif
