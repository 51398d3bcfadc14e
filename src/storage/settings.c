/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "storage/settings.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "storage/token.h"

#define AT(member) offsetof(struct settings, member)

const struct conf_item settings_items[] = {
    { "storage", "listen", CONF_LISTEN, FRONT_AT(listen), "127.0.0.1:6021", 0, 0, 0,
      "Address at which clients, or a front end, reach the storage host." },
    { "storage", "public-url", CONF_STR, FRONT_AT(public_url), NULL, 0, 0, 0,
      "URL of the storage host as clients know it, https://files.example.org; none: of 'listen'." },
    FRONT_CERTIFICATE_ITEMS("storage"),
    FRONT_MEMBERSHIP_ITEMS("storage", "storage host", "local", "its certificate and keys"),
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
    FRONT_RUNNING_ITEMS("storage", "clients", "127.0.0.1:6023"),
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
        (void)vec_grow(&volumes->items, &volumes->cap, 1, sizeof(*volumes->items));
        volumes->items[0] = aq_format("volume1:%s/volume1", s->common.state);
        volumes->count = 1;
    }
    if (volumes->count > STORAGE_VOLUMES_MAX)
        return aq_fail_field(err, EINVAL, "storage.volumes", "there are more than %d",
                             STORAGE_VOLUMES_MAX);
    for (size_t i = 0; r == 0 && i < volumes->count; i++)
        r = settings_check_volume(volumes, i, err);
    return r;
}
