/* SPDX-License-Identifier: Apache-2.0 */
/* containers_conf.c - settings of this node that skopeo follows and aliquot-fetch does not */
#include "agent/image/containers_conf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/strbuf.h"

#define CONF_MAX (1 << 20)

bool containers_conf_has_registries(const char *text)
{
    static const char *const words[] = { "registr", "credential-helpers" };
    bool is_aliases = false; /* of short names: any key may be there */

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *start = line + strspn(line, " \t\r");
        const char *word = start + strspn(start, " \t[\"'");

        if (*start == '[')
            is_aliases = strncmp(word, "aliases", strlen("aliases")) == 0;
        for (size_t i = 0; !is_aliases && i < AQ_COUNT(words); i++)
            if (strncmp(word, words[i], strlen(words[i])) == 0)
                return true;
    }
    return false;
}

static int containers_conf_check_file(const char *path, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, path, CONF_MAX, &text, NULL);

    if (r == -ENOENT || r == -ENOTDIR)
        return 0;
    if (r < 0 || (text.data && containers_conf_has_registries(text.data)))
        return aq_fail(err, ENOTSUP, "'%s' has settings of registries", path);
    return 0;
}

static int containers_conf_check_folder(const char *path, struct aq_error *err)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int r = 0;

    while (dir && r == 0 && (entry = readdir(dir))) {
        AQ_CLEANUP(aq_freep) char *file = aq_format("%s/%s", path, entry->d_name);

        if (entry->d_name[0] != '.')
            r = containers_conf_check_file(file, err);
    }
    if (dir)
        (void)closedir(dir);
    return r;
}

/* "DIRECTORY/rest" must not exist. */
static int containers_conf_check_absent(const char *directory, const char *rest,
                                        struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, rest);

    if (access(path, F_OK) < 0)
        return 0;
    return aq_fail(err, ENOTSUP, "'%s' exists", path);
}

static int containers_conf_check_environment(bool is_login_given, struct aq_error *err)
{
    static const char *const names[] = { "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy",
                                         "CONTAINERS_REGISTRIES_CONF" };
    const char *auth = getenv("REGISTRY_AUTH_FILE");

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (getenv(names[i]) && getenv(names[i])[0])
            return aq_fail(err, ENOTSUP, "the environment has %s", names[i]);
    if (!is_login_given && auth && auth[0])
        return aq_fail(err, ENOTSUP, "the environment has REGISTRY_AUTH_FILE");
    return 0;
}

/* Logins of the agent's user, wherever skopeo looks for them. */
static int containers_conf_check_logins(const char *home, const char *config, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *run = aq_format("/run/containers/%u", (unsigned)getuid());
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int r = containers_conf_check_absent(config, "containers/auth.json", err);

    if (r == 0)
        r = containers_conf_check_absent(run, "auth.json", err);
    if (r == 0 && runtime)
        r = containers_conf_check_absent(runtime, "containers/auth.json", err);
    if (r == 0)
        r = containers_conf_check_absent(home, ".docker/config.json", err);
    return r < 0 ? r : containers_conf_check_absent(home, ".dockercfg", err);
}

/* Below one of the folders of settings. */
static int containers_conf_check_settings(const char *directory, const char *registry,
                                          struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *file = aq_format("%s/containers/registries.conf", directory);
    AQ_CLEANUP(aq_freep) char *folder = aq_format("%s/containers/registries.conf.d", directory);
    AQ_CLEANUP(aq_freep) char *certs = aq_format("%s/containers/certs.d", directory);
    int r = containers_conf_check_file(file, err);

    if (r == 0)
        r = containers_conf_check_folder(folder, err);
    return r < 0 ? r : containers_conf_check_absent(certs, registry, err);
}

int containers_conf_check(const char *registry, bool is_login_given, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *home = fs_user_file("");
    AQ_CLEANUP(aq_freep) char *own = fs_user_file(".config");
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *const folders[] = { "/etc", own, xdg && xdg[0] ? xdg : own };
    int r = containers_conf_check_environment(is_login_given, err);

    for (size_t i = 0; r == 0 && i < AQ_COUNT(folders); i++)
        r = containers_conf_check_settings(folders[i], registry, err);
    if (r == 0)
        r = containers_conf_check_absent("/etc/docker/certs.d", registry, err);
    return r < 0 || is_login_given ? r : containers_conf_check_logins(home, folders[2], err);
}
