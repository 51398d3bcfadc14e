/* SPDX-License-Identifier: Apache-2.0 */
/* slice.c - the slice of one session's kernel: making, adopting and removing it */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/gpu_internal.h"
#include "agent/runtime/packets.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "gpuhost/time_share.h"

#define FULL_NS 10000000000 /* from a rejected allocation to the end of the program */

/* ---- what is granted ---- */

/* How many grants, or -errno. */
static int slice_read_grants(const struct accel_attachment *attachment,
                             struct gpu_grant ret[AQ_GPU_DEVICES_MAX], struct aq_error *err)
{
    int count = 0;

    for (size_t i = 0; i < attachment->part_count; i++) {
        const struct accel_part *part = &attachment->parts[i];

        if (!part->time_micro)
            continue;
        if (count == AQ_GPU_DEVICES_MAX)
            return aq_fail(err, EINVAL, "parts of more than %d devices in one session",
                           AQ_GPU_DEVICES_MAX);
        ret[count] = (struct gpu_grant){ .memory_bytes = part->memory_bytes,
                                         .share = part->time_micro,
                                         .processors = part->processors };
        if (!gpu_uuid_read(part->device_id, ret[count++].uuid))
            return aq_fail_as(err, EINVAL, "accelerator-failed", part->device_id,
                              "device '%s' cannot be parted: its id is no UUID of a GPU",
                              part->device_id);
    }
    return count;
}

bool gpu_is_needed(const struct accel_attachment *attachment)
{
    for (size_t i = 0; i < attachment->part_count; i++)
        if (attachment->parts[i].time_micro)
            return true;
    return false;
}

/* ---- life ---- */

static void slice_on_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Everything but the directory's contents. */
static void slice_free(struct gpu_slice *slice)
{
    bool is_polled = slice->poll.data != NULL;

    if (is_polled)
        uv_close((uv_handle_t *)&slice->poll, slice_on_poll_closed);
    slices_remove(slice->gpu->slices, &slice->slice);
    gpu_region_host_free(slice->slice.region);
    aq_closep(&slice->folder);
    free(slice->path);
    free(slice->socket_folder);
    free(slice->preload);
    free(slice->shared_allocs_path);
    if (!is_polled)
        free(slice);
}

void gpu_slice_leave(struct gpu_slice *slice)
{
    if (slice)
        slice_free(slice);
}

void gpu_slice_close(struct gpu_slice *slice)
{
    if (!slice)
        return;
    AQ_FAULT("agent.gpu.closing");
    (void)fs_remove_tree(AT_FDCWD, slice->path, NULL);
    slice_free(slice);
}
AQ_DEFINE_CLEANUP(struct gpu_slice, gpu_slice_leave)

static void slice_on_readable(uv_poll_t *poll, int status, int events)
{
    struct gpu_slice *slice = poll->data;
    size_t before = gpu_region_host_count(slice->slice.region);

    (void)status;
    (void)events;
    gpu_region_host_dispatch(slice->slice.region);
    if (gpu_region_host_count(slice->slice.region) > before)
        slices_wake(slice->gpu->slices);
}

static struct gpu_slice *slice_alloc(struct gpu *gpu, const struct uuid *id)
{
    struct gpu_slice *slice = aq_alloc(sizeof(*slice));
    char name[UUID_TEXT_MAX];

    *slice = (struct gpu_slice){ .gpu = gpu, .id = *id, .folder = -1, .kept = { -1, -1 } };
    slice->path = aq_format("%s/%s", gpu->folder, uuid_format(id, name));
    slice->socket_folder = aq_format("%s/run", slice->path);
    slice->preload = aq_format("%s/ld.so.preload", slice->path);
    slice->shared_allocs_path = aq_format("%s/loans", slice->path);
    return slice;
}

/* The share is there: answer on its socket, keep its clocks. */
static int slice_serve(struct gpu_slice *slice, struct aq_error *err)
{
    char socket[48];
    int r;

    slice->folder = open(slice->socket_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (slice->folder < 0)
        return aq_fail_errno(err, "open '%s'", slice->socket_folder);
    gpu_region_host_files(slice->slice.region, &slice->kept[0], &slice->kept[1]);
    (void)snprintf(socket, sizeof(socket), "/proc/self/fd/%d/gpu.sock", slice->folder);
    r = gpu_region_host_listen(slice->slice.region, socket, err);
    if (r < 0)
        return r;
    slices_add(slice->gpu->slices, &slice->slice);
    if (uv_poll_init(slice->gpu->loop, &slice->poll, gpu_region_host_poll_fd(slice->slice.region))
        < 0)
        return aq_fail(err, EIO, "slice of a GPU: it cannot be waited for");
    slice->poll.data = slice;
    (void)uv_poll_start(&slice->poll, UV_READABLE, slice_on_readable);
    return 0;
}

/* ---- a new one ---- */

static int slice_make_directory(struct gpu_slice *slice, const struct image *image,
                                struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_remove_tree(AT_FDCWD, slice->path, err);

    if (r < 0)
        return r;
    /* containers' users see them from below: only names in them are secret */
    if (mkdir(slice->path, 0711) < 0 || mkdir(slice->socket_folder, 0755) < 0)
        return aq_fail_errno(err, "make '%s'", slice->socket_folder);
    r = gpu_preload_text(image, &text, err);
    return r < 0 ? r : fs_write_quick(AT_FDCWD, slice->preload, text.data, text.len, 0644, err);
}

int gpu_slice_open(struct gpu *gpu, const struct uuid *id,
                   const struct accel_attachment *attachment, const struct image *image,
                   struct gpu_slice **ret, struct aq_error *err)
{
    AQ_CLEANUP(gpu_slice_leavep) struct gpu_slice *slice = NULL;
    struct gpu_grant grants[AQ_GPU_DEVICES_MAX];
    int r = slice_read_grants(attachment, grants, err);

    if (r < 0)
        return r;
    if (!gpu->library || !gpu->probe)
        return aq_fail_as(err, ENOENT, "unenforceable", "gpu.library",
                          "this node cannot hold sessions to parts of a GPU: %s is missing",
                          gpu->library ? "aliquot-gpu-probe" : "libaliquot-gpu.so");
    slice = slice_alloc(gpu, id);
    r = gpu_region_host_new(grants, (size_t)r, &slice->slice.region, err);
    if (r == 0)
        r = slice_make_directory(slice, image, err);
    if (r == 0)
        r = gpu_region_host_persist_allocs(slice->slice.region, slice->shared_allocs_path, err);
    if (r == 0)
        r = slice_serve(slice, err);
    AQ_FAULT("agent.gpu.open");
    if (r < 0) {
        (void)fs_remove_tree(AT_FDCWD, slice->path, NULL);
        return r;
    }
    *ret = AQ_TAKE(slice);
    return 0;
}

int gpu_slice_resize(struct gpu_slice *slice, const struct accel_attachment *attachment,
                     struct aq_error *err)
{
    struct gpu_grant grants[AQ_GPU_DEVICES_MAX];
    int count = slice_read_grants(attachment, grants, err), r = 0;

    for (int i = 0; r == 0 && i < count; i++)
        r = gpu_region_host_set(slice->slice.region, &grants[i], err);
    slices_changed(slice->gpu->slices, &slice->slice);
    return count < 0 ? count : r;
}

/* ---- one that outlived an agent ---- */

/* Another process's memory file of this name, opened again; or -errno. */
static int slice_open_kept(pid_t pid, const char *name, int flags)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    int fd = -ENOENT;
    struct dirent *entry;

    while (dir && fd < 0 && (entry = readdir(dir))) {
        char target[64];
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        target[len > 0 ? len : 0] = '\0';
        if (strncmp(target, "/memfd:", 7) == 0 && strncmp(target + 7, name, strlen(name)) == 0)
            fd = openat(dirfd(dir), entry->d_name, flags | O_CLOEXEC);
    }
    if (dir)
        (void)closedir(dir);
    return fd < 0 ? -ENOENT : fd;
}

/* The limits are new ones, which the next agent needs, too. */
static int slice_take_from_monitor(struct gpu_slice *slice, const char *monitor_folder,
                                   struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int monitor = packets_connect(monitor_folder, err);
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int limits, usage, r;

    if (monitor < 0)
        return monitor;
    if (getsockopt(monitor, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return aq_fail_errno(err, "ask for the monitor of '%s'", monitor_folder);
    limits = slice_open_kept(peer.pid, "aliquot-gpu-limits", O_RDONLY);
    usage = slice_open_kept(peer.pid, "aliquot-gpu-usage", O_RDWR);
    if (limits < 0 || usage < 0) {
        aq_closep(&limits);
        aq_closep(&usage);
        return aq_fail(err, EIO, "the monitor does not hold its memory files");
    }
    r = gpu_region_host_adopt(limits, usage, slice->shared_allocs_path, &slice->slice.region, err);
    if (r < 0)
        return r;
    gpu_region_host_files(slice->slice.region, &slice->kept[0], &slice->kept[1]);
    AQ_FAULT("agent.gpu.adopted");
    return packets_send_kept(monitor, slice->kept) < 0
               ? aq_fail_errno(err, "pass memory files to a monitor")
               : 0;
}

int gpu_slice_adopt(struct gpu *gpu, const struct uuid *id, const char *monitor_folder,
                    struct gpu_slice **ret, struct aq_error *err)
{
    AQ_CLEANUP(gpu_slice_leavep) struct gpu_slice *slice = slice_alloc(gpu, id);
    int r;

    if (access(slice->path, F_OK) < 0)
        return aq_fail_errno(err, "'%s'", slice->path);
    r = slice_take_from_monitor(slice, monitor_folder, err);
    if (r == 0)
        r = slice_serve(slice, err);
    if (r < 0)
        return r == -ENOENT ? -EIO : r;
    *ret = AQ_TAKE(slice);
    return 0;
}

/* ---- what became of it ---- */

bool gpu_slice_was_full(const struct gpu_slice *slice, struct strbuf *out)
{
    const struct aq_gpu_limits *limits = gpu_region_host_limits(slice->slice.region);
    const struct aq_gpu_usage *usage = gpu_region_host_usage(slice->slice.region);
    int64_t now = gpu_monotonic_ns();

    for (uint32_t d = 0; d < limits->device_count; d++) {
        int64_t at = __atomic_load_n(&usage->devices[d].refused_ns, __ATOMIC_RELAXED);

        if (at <= 0 || at > now || now - at > FULL_NS)
            continue;
        strbuf_addf(out,
                    "it failed after it was refused more of the %llu MiB of device memory "
                    "that it has",
                    (unsigned long long)limits->devices[d].memory_bytes >> 20);
        return true;
    }
    return false;
}

/* ---- for the container ---- */

size_t gpu_slice_mounts(const struct gpu_slice *slice, struct container_mount ret[GPU_MOUNTS])
{
    size_t n = 0;

    ret[n++] = (struct container_mount){ .source = slice->socket_folder,
                                         .target = GPU_SOCKET_FOLDER_INSIDE };
    ret[n++] = (struct container_mount){ .source = slice->gpu->library,
                                         .target = GPU_LIBRARY_INSIDE };
    ret[n++] = (struct container_mount){ .source = slice->gpu->probe, .target = GPU_PROBE_INSIDE };
    ret[n++] = (struct container_mount){ .source = slice->preload, .target = "/etc/ld.so.preload" };
    return n;
}

const int *gpu_slice_kept(const struct gpu_slice *slice)
{
    return slice->kept;
}
