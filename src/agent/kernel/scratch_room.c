/* SPDX-License-Identifier: Apache-2.0 */
/* scratch_room.c - what containers may write, against what the disk has */
#include "agent/kernel/scratch_room.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "agent/runtime/oci.h"

#define MEBIBYTE (INT64_C(1) << 20)

bool scratch_room_is_limited(const struct agent_daemon *agent)
{
    return agent->containers && runtime_oci_host(agent->containers)->scratch_template;
}

/* What its file takes of the disk; -ENOENT if there is none. */
static int64_t scratch_room_used(const struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *path = disk_worker_kernel_path(k->agent->disk, &k->id,
                                                              "scratch.img");
    struct stat st;

    return stat(path, &st) == 0 ? (int64_t)st.st_blocks * 512 : -ENOENT;
}

/* What it may write yet. */
static int64_t scratch_room_left(const struct local_kernel *k)
{
    int64_t size = k->agent->settings->scratch_bytes;

    return size - AQ_MIN(AQ_MAX(scratch_room_used(k), 0), size);
}

static int64_t scratch_room_promised(const struct agent_daemon *agent)
{
    int64_t sum = 0;

    for (size_t i = 0; i < agent->kernels.count; i++) {
        const struct local_kernel *k = agent->kernels.entries[i].value;

        if (k->has_scratch)
            sum += scratch_room_left(k);
    }
    return sum;
}

int64_t scratch_room_kept(void *data)
{
    const struct agent_daemon *agent = data;
    bool is_kept = agent->settings->scratch_reserve && scratch_room_is_limited(agent);

    return is_kept ? scratch_room_promised(agent) + SETTINGS_SCRATCH_MARGIN : 0;
}

static void scratch_room_on_made(void *data)
{
    kernel_step(data);
}

int scratch_room_take(struct local_kernel *k, struct aq_error *err)
{
    const struct settings *settings = k->agent->settings;
    struct statvfs disk;
    int64_t room, missing;

    list_remove(&k->room.link);
    if (k->has_scratch || !settings->scratch_reserve || !scratch_room_is_limited(k->agent))
        return 0;
    if (statvfs(settings->state, &disk) < 0)
        return aq_fail_errno(err, "statvfs '%s'", settings->state);
    room = (int64_t)(disk.f_bavail * disk.f_frsize) - scratch_room_kept(k->agent);
    missing = scratch_room_left(k) - room;
    k->room.on_made = scratch_room_on_made;
    k->room.data = k;
    if (missing > 0 && images_make_room(k->agent->images, missing, &k->room))
        return -EINPROGRESS;
    if (missing > 0)
        return aq_fail_kind(err, ENOSPC, "insufficient-resource",
                            "scratch space of %" PRId64 " MiB does not fit on this node's disk: "
                            "%" PRId64 " MiB of it are neither used nor granted to others; end "
                            "sessions, or set [container] scratch-size to that",
                            settings->scratch_bytes / MEBIBYTE, AQ_MAX(room, 0) / MEBIBYTE);
    k->has_scratch = true;
    return 0;
}

void scratch_room_adopt(struct local_kernel *k)
{
    k->has_scratch = scratch_room_used(k) >= 0;
}
