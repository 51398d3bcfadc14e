/* SPDX-License-Identifier: Apache-2.0 */
/* What container registries are logged in with, in the configuration tree. */
#include "manager/cluster/registry_logins.h"

#include <sodium.h>
#include <string.h>

#include "base/json_load.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/call/api.h"
#include "manager/cluster/cluster.h"
#include "model/config_key.h"
#include "model/reference.h"
#include "store/config_entries.h"

bool registry_logins_is_password(const char *key)
{
    size_t above = strlen(REGISTRY_KEY);
    const char *name = strncmp(key, REGISTRY_KEY "/", above + 1) == 0 ? key + above + 1 : NULL;
    const char *slash = name ? strchr(name, '/') : NULL;

    return slash && strcmp(slash, "/password") == 0;
}

/* Docker's own is known by another name where images are. */
static const char *registry_logins_host(const char *name)
{
    return strcmp(name, "index.docker.io") == 0 ? "docker.io" : name;
}

static void registry_logins_add_pair(json_t *auths, const char *name, const char *user,
                                     const char *password)
{
    AQ_CLEANUP(aq_freep) char *pair = aq_format("%s:%s", user, password);
    size_t len = strlen(pair),
           size = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);
    AQ_CLEANUP(aq_freep) char *auth = aq_alloc(size);

    sodium_bin2base64(auth, size, (const unsigned char *)pair, len, sodium_base64_VARIANT_ORIGINAL);
    explicit_bzero(pair, len);
    json_object_set_new(auths, registry_logins_host(name), json_pack("{s:s}", "auth", auth));
}

static void registry_logins_add(struct store_tx *tx, json_t *auths, const char *name,
                                const json_t *registry)
{
    const char *user = json_string_value(json_object_get(registry, "username"));
    const char *sealed = json_string_value(json_object_get(registry, "password"));
    AQ_CLEANUP(aq_freep) char *password = NULL;
    struct aq_error why = { 0 };

    if (!user || !sealed)
        return;
    if (config_secret_reveal(tx, sealed, &password, &why) < 0) {
        log_warning("the password of registry '%s' cannot be read: %s", name, why.text);
        return;
    }
    registry_logins_add_pair(auths, name, user, password);
    explicit_bzero(password, strlen(password));
}

int registry_tree_read(struct store_tx *tx, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(config_entries_done) struct config_entries found = { 0 };
    json_auto_t *tree = json_object();
    int r = config_entries_read(tx, REGISTRY_KEY, true, &found, err);

    for (size_t i = 0; r == 0 && i < found.count; i++) {
        const char *rest = found.items[i].key + strlen(REGISTRY_KEY);

        config_tree_add(tree, rest + (*rest == '/'), found.items[i].value);
    }
    if (r == 0)
        *ret = json_incref(tree);
    return r;
}

bool registry_is_verified(const json_t *registry)
{
    static const char *const words[] = { "false", "0", "no", "off" };
    const char *verify = json_string_value(json_object_get(registry, "ssl-verify"));

    for (size_t i = 0; verify && i < AQ_COUNT(words); i++)
        if (strcasecmp(verify, words[i]) == 0)
            return false;
    return true;
}

char *registry_logins_read(struct store_tx *tx, const json_t *tree)
{
    json_auto_t *auths = json_object();
    const char *name;
    json_t *registry;

    json_object_foreach((json_t *)(uintptr_t)tree, name, registry)
        registry_logins_add(tx, auths, name, registry);
    return json_object_size(auths) ? json_dump_text(auths, JSON_COMPACT) : NULL;
}

/* ---- changes ---- */

int registry_name_read(const char *text, char **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *image = aq_format("%.300s/x/image", text);
    struct reference ref = { 0 };
    struct aq_error why = { 0 };
    char *name = NULL;
    bool is_registry;

    is_registry = reference_parse(image, NULL, &ref, &why) == 0 && ref.registry
                  && (strcmp(ref.registry, text) == 0
                      || strcmp(ref.registry, REFERENCE_REGISTRY_DEFAULT) == 0)
                  && strcmp(ref.repository, "x/image") == 0;
    if (is_registry)
        name = aq_strdup(ref.registry);
    reference_done(&ref);
    if (!is_registry)
        return api_fail_param(
            err, "name",
            "'%.100s' is no registry; it is HOST[:PORT] as in images' names, such "
            "as registry.example:5000",
            text);
    *ret = name;
    return 0;
}

char *registry_key_of(const char *name)
{
    struct strbuf key = STRBUF_INIT;

    strbuf_adds(&key, REGISTRY_KEY "/");
    config_name_write(&key, name);
    return strbuf_steal(&key);
}

int registry_put(struct config_entries *puts, const char *name, const char *what, const char *value,
                 struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *above = registry_key_of(name);
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s%s%s", above, *what ? "/" : "", what);

    if (strcmp(what, "username") == 0 && strchr(value, ':'))
        return api_fail_param(err, "username", "has a ':', which user names of registries cannot");
    config_entries_add(puts, key, value);
    return 0;
}
