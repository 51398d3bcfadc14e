/* SPDX-License-Identifier: Apache-2.0 */
/* region_host.c - the memory files of a slice: making, adopting, changing, ending slots */
#include "gpuhost/region_host_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "gpu/charge.h"
#include "gpuhost/time_share.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int region_host_watch(struct gpu_region_host *host, int fd, uint64_t kind, uint64_t number)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = kind << 32 | number };

    return epoll_ctl(host->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int region_host_make_file(const char *name, size_t size, int more_seals, void **ret_map,
                                 struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *map;

    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return aq_fail_errno(err, "memory file for a GPU slice");
    map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return aq_fail_errno(err, "map a GPU slice");
    /* after the only writable mapping of 'limits' */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | more_seals) < 0) {
        int r = aq_fail_errno(err, "seal a GPU slice");

        (void)munmap(map, size);
        return r;
    }
    *ret_map = map;
    return AQ_TAKE_FD(fd);
}

static struct gpu_region_host *region_host_alloc(struct aq_error *err)
{
    struct gpu_region_host *host = aq_alloc(sizeof(*host));

    host->limits_fd = host->usage_fd = host->listener = -1;
    host->slot_end = 1;
    for (size_t i = 0; i < AQ_COUNT(host->clients); i++)
        host->clients[i] = -1;
    for (size_t i = 0; i < AQ_COUNT(host->pidfds); i++)
        host->pidfds[i] = -1;
    host->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (host->epoll < 0) {
        (void)aq_fail_errno(err, "epoll for a GPU slice");
        free(host);
        return NULL;
    }
    if (gpu_shared_allocs_new(&host->shared_allocs, err) < 0) {
        gpu_region_host_free(host);
        return NULL;
    }
    return host;
}

static void region_host_set_grant(struct aq_gpu_limits_device *device,
                                  const struct gpu_grant *grant)
{
    memcpy(device->uuid, grant->uuid, sizeof(device->uuid));
    device->flags = grant->flags;
    device->processors = grant->processors;
    __atomic_store_n(&device->share, grant->share, __ATOMIC_RELAXED);
    __atomic_store_n(&device->memory_bytes, grant->memory_bytes, __ATOMIC_RELEASE);
}

static int region_host_check_grant(const struct gpu_grant *grant, struct aq_error *err)
{
    if (grant->share == 0 || grant->share > AQ_GPU_WHOLE)
        return aq_fail_field(err, EINVAL, "share",
                             "a share of %u millionths: 1 to 1000000 are possible", grant->share);
    if (grant->memory_bytes < AQ_GPU_GRANULE)
        return aq_fail_field(err, EINVAL, "memory",
                             "%llu bytes of device memory: at least 2 MiB are needed",
                             (unsigned long long)grant->memory_bytes);
    return 0;
}

int gpu_region_host_new(const struct gpu_grant *grants, size_t count, struct gpu_region_host **ret,
                        struct aq_error *err)
{
    AQ_CLEANUP(gpu_region_host_freep) struct gpu_region_host *host = NULL;
    void *map;
    int r;

    if (count == 0 || count > AQ_GPU_DEVICES_MAX)
        return aq_fail(err, EINVAL, "%zu devices in one slice: 1 to %d are possible", count,
                       AQ_GPU_DEVICES_MAX);
    for (size_t i = 0; i < count; i++)
        if ((r = region_host_check_grant(&grants[i], err)) < 0)
            return r;
    if (!(host = region_host_alloc(err)))
        return -err->code;
    r = region_host_make_file("aliquot-gpu-limits", sizeof(*host->limits), F_SEAL_FUTURE_WRITE,
                              &map, err);
    if (r < 0)
        return r;
    host->limits_fd = r;
    host->limits = map;
    r = region_host_make_file("aliquot-gpu-usage", sizeof(*host->usage), 0, &map, err);
    if (r < 0)
        return r;
    host->usage_fd = r;
    host->usage = map;
    for (size_t i = 0; i < count; i++)
        region_host_set_grant(&host->limits->devices[i], &grants[i]);
    host->limits->device_count = (uint32_t)count;
    host->limits->magic = host->usage->magic = AQ_GPU_MAGIC;
    host->limits->version = host->usage->version = AQ_GPU_VERSION;
    host->limits->size = sizeof(*host->limits);
    host->usage->size = sizeof(*host->usage);
    gpu_time_share_start(host->limits, gpu_monotonic_ns());
    *ret = AQ_TAKE(host);
    return 0;
}

uint64_t region_host_start_time(pid_t pid)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[32];
    const char *at;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0 || !(at = strrchr(text.data, ')')))
        return 0;
    for (int field = 2; field < 22 && at; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

void region_host_charge_container(struct gpu_region_host *host)
{
    for (uint32_t device = 0; device < host->limits->device_count; device++)
        charge_set(host->usage, 0, device,
                   gpu_shared_allocs_charged_to_container(host->shared_allocs, device));
}

void region_host_end_slot(struct gpu_region_host *host, uint32_t slot)
{
    /* what others still hold is the container's first: charged twice for a moment, never not */
    if (gpu_shared_allocs_end_process(host->shared_allocs, slot))
        region_host_charge_container(host);
    for (uint32_t device = 0; device < AQ_GPU_DEVICES_MAX; device++)
        charge_reclaim(host->usage, slot, device);
    AQ_FAULT("gpuhost.share.reclaimed");
    host->limits->owners[slot] = (struct aq_gpu_owner){ 0 };
    if (host->pidfds[slot] >= 0) {
        aq_closep(&host->pidfds[slot]);
        host->pidfds[slot] = -1;
        host->count--;
    }
    while (host->slot_end > 1 && !host->limits->owners[host->slot_end - 1].host_pid)
        host->slot_end--;
}

bool region_host_follow(struct gpu_region_host *host, uint32_t slot, int pidfd)
{
    if (pidfd < 0 || region_host_watch(host, pidfd, REGION_HOST_ON_DEATH, slot) < 0)
        return false;
    host->pidfds[slot] = pidfd;
    host->count++;
    if (host->slot_end <= slot)
        host->slot_end = slot + 1;
    return true;
}

int region_host_open_pid(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void region_host_take_over(struct gpu_region_host *host)
{
    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++) {
        const struct aq_gpu_owner *owner = &host->limits->owners[slot];
        AQ_CLEANUP(aq_closep) int pidfd = owner->host_pid ? region_host_open_pid(owner->host_pid)
                                                          : -1;

        if (!owner->host_pid)
            continue;
        if (region_host_start_time(owner->host_pid) == owner->start_time
            && region_host_follow(host, slot, pidfd))
            pidfd = -1;
        else
            region_host_end_slot(host, slot);
    }
}

/* Nobody can write the old limits any more, that is their seal: new ones begin
 * with their contents, and processes come for them when they see the old
 * agent silent.
 */
static int region_host_renew_limits(struct gpu_region_host *host, int old_fd, struct aq_error *err)
{
    void *map;
    int r = region_host_make_file("aliquot-gpu-limits", sizeof(*host->limits), F_SEAL_FUTURE_WRITE,
                                  &map, err);

    if (r < 0)
        return r;
    host->limits_fd = r;
    host->limits = map;
    if (pread(old_fd, map, sizeof(*host->limits), 0) != sizeof(*host->limits))
        return aq_fail_errno(err, "read the limits of a GPU slice");
    if (host->limits->magic != AQ_GPU_MAGIC || host->limits->version != AQ_GPU_VERSION
        || host->limits->device_count > AQ_GPU_DEVICES_MAX)
        return aq_fail(err, EINVAL, "the memory files are no GPU slice of version %u",
                       AQ_GPU_VERSION);
    return 0;
}

int gpu_region_host_persist_allocs(struct gpu_region_host *host, const char *path,
                                   struct aq_error *err)
{
    return gpu_shared_allocs_open_file(host->shared_allocs, path, err);
}

int gpu_region_host_adopt(int limits_fd, int usage_fd, const char *shared_allocs_path,
                          struct gpu_region_host **ret, struct aq_error *err)
{
    AQ_CLEANUP(gpu_region_host_freep) struct gpu_region_host *host = NULL;
    AQ_CLEANUP(aq_closep) int limits = limits_fd;
    AQ_CLEANUP(aq_closep) int usage = usage_fd;
    struct stat st;
    int r;

    if (!(host = region_host_alloc(err)))
        return -err->code;
    if (fstat(limits, &st) < 0 || st.st_size != sizeof(*host->limits) || fstat(usage, &st) < 0
        || st.st_size != sizeof(*host->usage))
        return aq_fail(err, EINVAL, "the memory files of a GPU slice have another size");
    if ((r = region_host_renew_limits(host, limits, err)) < 0)
        return r;
    host->usage_fd = AQ_TAKE_FD(usage);
    host->usage = mmap(NULL, sizeof(*host->usage), PROT_READ | PROT_WRITE, MAP_SHARED,
                       host->usage_fd, 0);
    if (host->usage == MAP_FAILED) {
        host->usage = NULL;
        return aq_fail_errno(err, "map the usage of a GPU slice");
    }
    if (shared_allocs_path
        && (r = gpu_shared_allocs_open_file(host->shared_allocs, shared_allocs_path, err)) < 0)
        return r;
    region_host_charge_container(host);
    region_host_take_over(host);
    *ret = AQ_TAKE(host);
    return 0;
}

void gpu_region_host_free(struct gpu_region_host *host)
{
    if (!host)
        return;
    for (size_t i = 0; i < AQ_COUNT(host->clients); i++)
        aq_closep(&host->clients[i]);
    for (size_t i = 0; i < AQ_COUNT(host->pidfds); i++)
        aq_closep(&host->pidfds[i]);
    if (host->limits)
        (void)munmap(host->limits, sizeof(*host->limits));
    if (host->usage)
        (void)munmap(host->usage, sizeof(*host->usage));
    aq_closep(&host->limits_fd);
    aq_closep(&host->usage_fd);
    if (host->listener >= 0 && host->path)
        (void)unlink(host->path);
    aq_closep(&host->listener);
    aq_closep(&host->epoll);
    free(host->path);
    gpu_shared_allocs_free(host->shared_allocs);
    free(host);
}

void gpu_region_host_files(const struct gpu_region_host *host, int *ret_limits, int *ret_usage)
{
    *ret_limits = host->limits_fd;
    *ret_usage = host->usage_fd;
}

int gpu_region_host_poll_fd(const struct gpu_region_host *host)
{
    return host->epoll;
}

/* What is in use stays in use, and is no violation. */
static void region_host_keep_held(struct aq_gpu_limits_device *device, uint64_t fresh_bytes)
{
    uint64_t held = AQ_MAX(device->held_bytes, device->memory_bytes);

    device->held_bytes = fresh_bytes < held ? held : 0;
}

int gpu_region_host_set(struct gpu_region_host *host, const struct gpu_grant *grant,
                        struct aq_error *err)
{
    int r = region_host_check_grant(grant, err);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < host->limits->device_count; i++)
        if (memcmp(host->limits->devices[i].uuid, grant->uuid, sizeof(grant->uuid)) == 0) {
            region_host_keep_held(&host->limits->devices[i], grant->memory_bytes);
            region_host_set_grant(&host->limits->devices[i], grant);
            return 0;
        }
    return aq_fail(err, ENODEV, "the slice has no such device");
}

struct aq_gpu_limits *gpu_region_host_limits(struct gpu_region_host *host)
{
    return host->limits;
}

struct aq_gpu_usage *gpu_region_host_usage(struct gpu_region_host *host)
{
    return host->usage;
}

size_t gpu_region_host_count(const struct gpu_region_host *host)
{
    return host->count;
}

uint32_t gpu_region_host_slot_end(const struct gpu_region_host *host)
{
    return host->slot_end;
}

uint64_t gpu_region_host_uncharged(const struct gpu_region_host *host, uint32_t slot,
                                   uint32_t device)
{
    return gpu_shared_allocs_uncharged(host->shared_allocs, slot, device);
}

uint64_t gpu_region_host_overcounted(const struct gpu_region_host *host, uint32_t device)
{
    return gpu_shared_allocs_overcounted(host->shared_allocs, device);
}
