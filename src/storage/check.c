/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see storage/check.h */
#include "storage/check.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "check/machine.h"
#include "front/check.h"
#include "storage/settings.h"
#include "storage/volume.h"
#include "transfer/volume_layout.h"

static void storage_check_one(const struct settings *s, const char *item, struct finding *ret)
{
    AQ_CLEANUP(aq_freep) char *seen = settings_volume_seen(s, item);
    const struct volume_dir volume = { .name = item,
                                       .path = settings_volume_path(item),
                                       .seen = seen };
    struct aq_error err = { 0 };

    if (seen && volume_check_mode(&volume, &err) < 0) {
        finding_say(ret, CHECK_MISSING, "%s", err.text);
        finding_mean(ret, "the storage host does not start, or does not use the volume");
        finding_mend(ret, "chmod 0700 %s", volume.path);
        return;
    }
    if (!seen || !volume_is_away(&volume))
        return;
    finding_say(ret, CHECK_MISSING, "volume '%s' is not what it was: no %s in it", item,
                VOLUME_MARK);
    finding_mean(ret, "folders on it cannot be read or written");
    finding_mend(ret, "mount it; if it is a new one: touch %s/%s", volume.path, VOLUME_MARK);
}

/* The first that is wrong. One in the state folder is made at the start. */
static void storage_check_volumes(void *data, struct finding *ret)
{
    const struct settings *s = data;
    struct statvfs fs;

    finding_say(ret, CHECK_OK, "%zu, at %s", s->volumes.count,
                settings_volume_path(s->volumes.items[0]));
    for (size_t i = 0; i < s->volumes.count; i++) {
        const char *path = settings_volume_path(s->volumes.items[i]);

        if (settings_is_own(s, path))
            continue;
        if (statvfs(path, &fs) == 0 && access(path, R_OK | W_OK | X_OK) == 0) {
            machine_judge_space(path, &fs, path, ret);
            if (ret->level == CHECK_OK)
                storage_check_one(s, s->volumes.items[i], ret);
            if (ret->level != CHECK_OK)
                return;
            continue;
        }
        finding_say(ret, CHECK_MISSING, "volume '%s': %s", s->volumes.items[i], strerror(errno));
        finding_mean(ret, "folders on it cannot be read or written");
        finding_mend(ret, "mount it, or set volumes in [storage] of storage.toml");
        return;
    }
}

const struct check storage_checks[] = {
    { "storage.joined", "storage", "membership", front_check_joined },
    { "storage.port", "storage", "port for clients", front_check_port },
    { "storage.certificate", "storage", "certificate", front_check_certificate },
    { "storage.volumes", "storage", "volumes", storage_check_volumes },
    { .id = NULL },
};
