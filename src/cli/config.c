/* SPDX-License-Identifier: Apache-2.0 */
/* Where the manager is and who is asking. */
#include "cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/memory.h"

#define PROFILES_MAX_BYTES (256u << 10)

const struct cli_setting_info cli_settings[SETTING_COUNT] = {
    [SETTING_ENDPOINT] = { "endpoint", "ALIQUOT_ENDPOINT", "BACKEND_ENDPOINT",
                           "http://127.0.0.1:8081",
                           "address of the manager; several, by commas, are tried in turn", false },
    [SETTING_ACCESS_KEY] = { "access_key", "ALIQUOT_ACCESS_KEY", "BACKEND_ACCESS_KEY", NULL,
                             "public half of the keypair", false },
    [SETTING_SECRET_KEY] = { "secret_key", "ALIQUOT_SECRET_KEY", "BACKEND_SECRET_KEY", NULL,
                             "secret half of the keypair", true },
    [SETTING_DOMAIN] = { "domain", "ALIQUOT_DOMAIN", "BACKEND_DOMAIN", "default",
                         "domain of logins and, if it is set, of new sessions", false },
    [SETTING_GROUP] = { "group", "ALIQUOT_GROUP", "BACKEND_GROUP", NULL,
                        "project of new sessions; 'default' or your only one if not set", false },
    [SETTING_RESOURCE_GROUP] = { "resource_group", "ALIQUOT_RESOURCE_GROUP", NULL, NULL,
                                 "resource group of new sessions; any that is allowed if not set",
                                 false },
    [SETTING_IMAGE] = { "image", "ALIQUOT_IMAGE", NULL, "process", "image of new sessions", false },
    [SETTING_CA_FILE] = { "ca_file", "ALIQUOT_CA_FILE", NULL, NULL,
                          "certificates to trust instead of the system's", false },
    [SETTING_SKIP_VERIFY] = { "skip_verify", "ALIQUOT_SKIP_SSLCERT_VALIDATION",
                              "BACKEND_SKIP_SSLCERT_VALIDATION", "no",
                              "yes = do not verify the manager's certificate", false },
    [SETTING_CONNECT_TIMEOUT] = { "connection_timeout", "ALIQUOT_CONNECTION_TIMEOUT",
                                  "BACKEND_CONNECTION_TIMEOUT", "10",
                                  "seconds to wait for a connection", false },
    [SETTING_READ_TIMEOUT] = { "read_timeout", "ALIQUOT_READ_TIMEOUT", "BACKEND_READ_TIMEOUT", "0",
                               "seconds to wait for an answer; 0 = forever", false },
};

/* The object of the file, {"current": name, "profiles": {name: settings}}; an
 * empty one if there is no file. Others must not be able to read it.
 */
static int config_read_profiles(const char *path, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_error_t where;
    struct stat st;
    json_t *root;
    int r;

    if (stat(path, &st) < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return aq_fail_errno(err, "stat '%s'", path);
        *ret = json_object();
        return 0;
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return aq_fail(err, EPERM, "'%s' holds secrets but others may read it; run: chmod 600 '%s'",
                       path, path);
    r = fs_read(AT_FDCWD, path, PROFILES_MAX_BYTES, &text, err);
    if (r < 0)
        return r;
    root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(root)) {
        json_decref(root);
        return aq_fail(err, EBADMSG, "'%s' is not a file of profiles (line %d: %s)", path,
                       where.line, root ? "not an object" : where.text);
    }
    *ret = root;
    return 0;
}

static const char *config_find_env(const char *name)
{
    const char *value = name ? getenv(name) : NULL;

    return value && value[0] ? value : NULL;
}

/* The first source that has the setting. */
static void config_load_setting(struct cli_config *config, enum cli_setting s, const char *option,
                                const json_t *profile)
{
    const struct cli_setting_info *info = &cli_settings[s];
    const char *value = option;

    config->origins[s] = "option";
    if (!value && (value = config_find_env(info->env)))
        config->origins[s] = info->env;
    if (!value && (value = config_find_env(info->backend_env)))
        config->origins[s] = info->backend_env;
    if (!value && (value = json_string_value(json_object_get(profile, info->key))))
        config->origins[s] = "profile";
    if (!value && (value = info->fallback))
        config->origins[s] = "default";
    if (!value)
        config->origins[s] = "";
    config->values[s] = aq_strdup(value);
}

int cli_config_load(struct cli_config *config, const char *endpoint, const char *profile,
                    struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = fs_user_config_dir();
    const char *wanted = profile ? profile : config_find_env("ALIQUOT_PROFILE");
    const json_t *settings;
    json_t *root = NULL;
    int r;

    *config = (struct cli_config){ .path = aq_format("%s/profiles.json", folder),
                                   .is_chosen = wanted != NULL };
    r = config_read_profiles(config->path, &root, err);
    if (r < 0)
        return r;
    if (!wanted)
        wanted = json_string_value(json_object_get(root, "current"));
    config->profile = aq_strdup(wanted ? wanted : "default");
    settings = json_object_get(json_object_get(root, "profiles"), config->profile);
    for (int s = 0; s < SETTING_COUNT; s++)
        config_load_setting(config, s, s == SETTING_ENDPOINT ? endpoint : NULL, settings);
    json_decref(root);
    return 0;
}

void cli_config_done(struct cli_config *config)
{
    for (int s = 0; s < SETTING_COUNT; s++)
        free(config->values[s]);
    free(config->profile);
    free(config->path);
    *config = (struct cli_config){ .path = NULL };
}

const char *cli_config_get_chosen(const struct cli_config *config, enum cli_setting s)
{
    const char *origin = config->origins[s];

    return origin && strcmp(origin, "default") == 0 ? NULL : config->values[s];
}

static int config_write_profiles(const char *path, const json_t *root, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = json_dumps(root, JSON_INDENT(2));
    AQ_CLEANUP(aq_freep) char *folder = aq_strdup(path);
    int r;

    *strrchr(folder, '/') = '\0';
    r = fs_mkdirs(folder, 0700, err);
    return r < 0 ? r : fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, err);
}

/* To be held from reading the file until it is replaced, else one of two logins at once is lost. -1
 * where the file system has no such locks.
 */
static int config_lock(const struct cli_config *config)
{
    AQ_CLEANUP(aq_freep) char *folder = aq_strdup(config->path);
    int fd;

    *strrchr(folder, '/') = '\0';
    (void)fs_mkdirs(folder, 0700, NULL);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)flock(fd, LOCK_EX);
    return fd;
}

/* With the lock. */
static int config_save(const struct cli_config *config, const json_t *settings,
                       struct aq_error *err)
{
    json_t *root = NULL, *profiles;
    int r = config_read_profiles(config->path, &root, err);

    if (r < 0)
        return r;
    profiles = json_object_get(root, "profiles");
    if (!json_is_object(profiles)) {
        profiles = json_object();
        (void)json_object_set_new(root, "profiles", profiles);
    }
    if (json_object_set(profiles, config->profile, (json_t *)settings) < 0)
        r = aq_fail_field(err, EINVAL, "profile", "the name of the profile is not UTF-8");
    if (r == 0)
        (void)json_object_set_new(root, "current", json_string(config->profile));
    if (r == 0)
        r = config_write_profiles(config->path, root, err);
    json_decref(root);
    return r;
}

int cli_profiles_read(const struct cli_config *config, json_t **ret, struct aq_error *err)
{
    json_t *root = NULL, *profiles;
    int r = config_read_profiles(config->path, &root, err);

    if (r < 0)
        return r;
    profiles = json_object_get(root, "profiles");
    *ret = json_is_object(profiles) ? json_incref(profiles) : json_object();
    json_decref(root);
    return 0;
}

static int config_fail_no_profile(const json_t *profiles, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;
    const char *key;
    json_t *settings;

    json_object_foreach((json_t *)(uintptr_t)profiles, key, settings)
        if (known.len < 200)
            strbuf_addf(&known, "%s%.60s", known.len ? ", " : "; there are: ", key);
    return aq_fail(err, ENOENT, "there is no profile '%.60s'%s", name, known.data);
}

int cli_profile_check(const struct cli_config *config, struct aq_error *err)
{
    json_t *profiles;
    int r = config->is_chosen ? cli_profiles_read(config, &profiles, err) : 0;

    if (r < 0 || !config->is_chosen)
        return r;
    if (!json_object_get(profiles, config->profile))
        r = config_fail_no_profile(profiles, config->profile, err);
    json_decref(profiles);
    return r;
}

/* Make the profile the current one ('is_use') or remove it, in the file. */
static int config_edit_profile(const struct cli_config *config, const char *name, bool is_use,
                               struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int lock = config_lock(config);
    json_t *root = NULL, *profiles;
    const char *current;
    int r = config_read_profiles(config->path, &root, err);

    (void)lock; /* held to the end */
    if (r < 0)
        return r;
    profiles = json_object_get(root, "profiles");
    current = json_string_value(json_object_get(root, "current"));
    if (!json_object_get(profiles, name))
        r = config_fail_no_profile(profiles, name, err);
    else if (is_use)
        (void)json_object_set_new(root, "current", json_string(name));
    else if (current && strcmp(current, name) == 0)
        (void)json_object_del(root, "current");
    if (r == 0 && !is_use)
        (void)json_object_del(profiles, name);
    if (r == 0)
        r = config_write_profiles(config->path, root, err);
    json_decref(root);
    return r;
}

int cli_profile_use(const struct cli_config *config, const char *name, struct aq_error *err)
{
    return config_edit_profile(config, name, true, err);
}

int cli_profile_remove(const struct cli_config *config, const char *name, struct aq_error *err)
{
    return config_edit_profile(config, name, false, err);
}

int cli_profile_switch(struct cli_config *config, const char *name, struct aq_error *err)
{
    json_t *root = NULL;
    int r = config_read_profiles(config->path, &root, err);

    if (r < 0)
        return r;
    free(config->profile);
    config->profile = aq_strdup(name);
    for (int s = 0; s < SETTING_COUNT; s++) {
        if (s == SETTING_ENDPOINT)
            continue;
        free(AQ_TAKE(config->values[s]));
        config_load_setting(config, s, NULL,
                            json_object_get(json_object_get(root, "profiles"), name));
    }
    json_decref(root);
    return 0;
}

int cli_profile_change(const struct cli_config *config, const json_t *changes, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int lock = config_lock(config);
    json_t *root = NULL, *settings, *value;
    const char *key;
    int r = config_read_profiles(config->path, &root, err);

    (void)lock; /* held to the end */
    if (r < 0)
        return r;
    settings = json_object_get(json_object_get(root, "profiles"), config->profile);
    settings = json_is_object(settings) ? json_incref(settings) : json_object();
    json_object_foreach((json_t *)(uintptr_t)changes, key, value) {
        if (json_is_null(value))
            (void)json_object_del(settings, key);
        else
            (void)json_object_set(settings, key, value);
    }
    r = config_save(config, settings, err);
    json_decref(settings);
    json_decref(root);
    return r;
}
