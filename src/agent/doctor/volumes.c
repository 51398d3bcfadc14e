/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c - are the volumes there whose folders sessions mount? */
#include "agent/volume/volumes.h"

#include <errno.h>

#include "agent/doctor/doctor_internal.h"

static void doctor_ignore_change(void *data)
{
    (void)data;
}

static void doctor_judge_volumes(const struct volumes *volumes, const struct settings *s,
                                 struct finding *ret)
{
    struct aq_error err = { 0 };
    size_t i = 0;
    int r = 0;

    while (i < s->volumes.count && (r = volumes_check(volumes, i, &err)) == 0)
        i++;
    if (r == 0) {
        finding_say(ret, CHECK_OK, "%zu, at %s", i, settings_volume_path(s->volumes.items[0]));
        return;
    }
    finding_say(ret, r == -EOPNOTSUPP ? CHECK_WARNING : CHECK_MISSING, "%s", err.text);
    finding_mean(ret, "sessions that mount folders of it are not placed here, or do not start");
    if (r == -EOPNOTSUPP)
        finding_mend(ret, "keep the volume on ext4, XFS, Btrfs or CephFS");
    else if (r == -EPERM)
        finding_mend(ret, "chmod 0700 %s", settings_volume_path(s->volumes.items[i]));
    else
        finding_mend(ret, "mount %s, or correct volumes in [folders] of agent.toml",
                     settings_volume_path(s->volumes.items[i]));
}

void doctor_check_volumes(void *data, struct finding *ret)
{
    struct doctor *d = data;
    struct volumes *volumes;

    if (d->settings->volumes.count == 0) {
        finding_say(ret, CHECK_OK, "none: sessions mount no folders here");
        return;
    }
    volumes = volumes_new(&d->loop, d->settings, d->monitor, doctor_ignore_change, NULL);
    while (!volumes_are_known(volumes))
        (void)uv_run(&d->loop, UV_RUN_ONCE);
    doctor_judge_volumes(volumes, d->settings, ret);
    volumes_free(volumes);
}
