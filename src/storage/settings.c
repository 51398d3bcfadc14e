/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "storage/settings.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "storage/token.h"

#define AT(member) offsetof(struct settings, member)
#define COMMON(member) AT(common.member)

const struct conf_item settings_items[] = {
    { "storage", "listen", CONF_LISTEN, COMMON(listen), "127.0.0.1:6021", 0, 0, 0,
      "Address at which clients, or a front end, reach the storage host." },
    { "storage", "public-url", CONF_STR, COMMON(public_url), NULL, 0, 0, 0,
      "URL of the storage host as clients know it, https://files.example.org; none: of 'listen'." },
    { "storage", "tls-cert", CONF_PATH, COMMON(tls_cert), NULL, 0, 0, 0,
      "Certificate chain (PEM), read again on SIGHUP; without one it speaks plain HTTP." },
    { "storage", "tls-key", CONF_PATH, COMMON(tls_key), NULL, 0, 0, 0, "Its private key (PEM)." },
    { "storage", "insecure", CONF_BOOL, COMMON(insecure), NULL, 0, 0, 0,
      "Allow plain HTTP on an address that others can reach." },
    { "storage", "name", CONF_STR, COMMON(name), "local", 0, 0, 0,
      "Name of this storage host in its cluster; a token to join is made for it." },
    { "storage", "state", CONF_PATH, COMMON(state), NULL, 0, 0, 0,
      "Folder of its certificate and keys." },
    { "storage", "manager", CONF_LISTEN, COMMON(manager), NULL, 0, 0, 0,
      "The manager's link, HOST:8082; none: the one that was joined." },
    { "storage", "volumes", CONF_LIST, AT(volumes), NULL, 0, 0, 0,
      "Directories in which folders lie, volume1:/srv/folders; none: volume1 in its state folder." },
    { "storage", "token-lifetime", CONF_DURATION, AT(token_usec), "1h", 60 * USEC_PER_SEC,
      INT64_C(7) * 86400 * USEC_PER_SEC, 0,
      "How long a client may wait before it begins an upload or a download." },
    { "storage", "upload-lifetime", CONF_DURATION, AT(upload_usec), "1d", 3600 * USEC_PER_SEC,
      INT64_C(30) * 86400 * USEC_PER_SEC, 0,
      "How long an upload that has begun is kept while nothing of it comes." },
    { "storage", "max-transfers", CONF_INT, AT(transfers_max), "256", 1, 10000, 0,
      "Uploads and downloads at one time, up to 0.5 MiB of memory each; a user or a folder alone has "
      "a third of them, and further ones are asked to wait." },
    { "storage", "max-connections", CONF_INT, AT(connections_max), "10000", 1, 1000000, 0,
      "Connections of clients at one time; further ones are closed." },
    { "storage", "log-level", CONF_STR, COMMON(log_level), "info", 0, 0, 0,
      "error, warning, info or debug." },
    { "metrics", "listen", CONF_STR, COMMON(metrics_listen), "127.0.0.1:6023", 0, 0, 0,
      "Address of /metrics; off: none." },
    { "metrics", "tls-cert", CONF_PATH, COMMON(metrics_tls_cert), NULL, 0, 0, 0,
      "Certificate chain of /metrics (PEM)." },
    { "metrics", "tls-key", CONF_PATH, COMMON(metrics_tls_key), NULL, 0, 0, 0,
      "Its private key (PEM)." },
    { "metrics", "insecure", CONF_BOOL, COMMON(metrics_insecure), NULL, 0, 0, 0,
      "Allow plain HTTP where others can reach it." },
    CONF_TABLE_END,
};

const char *settings_volume_path(const char *item)
{
    return item + strcspn(item, ":") + 1;
}

char *settings_volume_seen(const struct settings *settings, const char *item)
{
    return aq_format("%s/%.*s.volume", settings->common.state, (int)strcspn(item, ":"), item);
}

bool settings_is_own(const struct settings *settings, const char *path)
{
    size_t len = strlen(settings->common.state);

    return strncmp(path, settings->common.state, len) == 0 && path[len] == '/';
}

static int settings_check_volume(const struct conf_list *volumes, size_t at, struct aq_error *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const char *item = volumes->items[at];
    size_t len = strcspn(item, ":");

    if (len == 0 || len > TOKEN_VOLUME_MAX || strspn(item, letters) < len || item[len] != ':'
        || item[len + 1] != '/')
        return aq_fail_field(err, EINVAL, "storage.volumes",
                             "'%.100s' is no name and absolute path, such as volume1:/srv/folders",
                             item);
    for (size_t i = 0; i < at; i++)
        if (strncmp(volumes->items[i], item, len + 1) == 0)
            return aq_fail_field(err, EINVAL, "storage.volumes", "two volumes are called '%.*s'",
                                 (int)len, item);
    return 0;
}

int settings_finish(void *settings, struct aq_error *err)
{
    struct settings *s = settings;
    struct conf_list *volumes = &s->volumes;
    int r = 0;

    if (volumes->count == 0) {
        if (!vec_grow(&volumes->items, &volumes->cap, 1, sizeof(*volumes->items))
            || !(volumes->items[0] = aq_format("volume1:%s/volume1", s->common.state)))
            return aq_fail_oom(err);
        volumes->count = 1;
    }
    if (volumes->count > STORAGE_VOLUMES_MAX)
        return aq_fail_field(err, EINVAL, "storage.volumes", "there are more than %d",
                             STORAGE_VOLUMES_MAX);
    for (size_t i = 0; r == 0 && i < volumes->count; i++)
        r = settings_check_volume(volumes, i, err);
    return r;
}
