#include "gpuhost/share_private.h"

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
#include "base/strbuf.h"
#include "gpu/charge.h"
#include "gpuhost/clocks.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int share_watch(struct gpu_share *share, int fd, uint64_t kind, uint64_t number)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = kind << 32 | number };

    return epoll_ctl(share->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int make_file(const char *name, size_t size, int more_seals, void **ret_map,
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

static struct gpu_share *alloc_share(struct aq_error *err)
{
    struct gpu_share *share = calloc(1, sizeof(*share));

    if (!share) {
        (void)aq_fail(err, ENOMEM, "GPU slice");
        return NULL;
    }
    share->limits_fd = share->usage_fd = share->listener = -1;
    share->slot_end = 1;
    for (size_t i = 0; i < AQ_COUNT(share->clients); i++)
        share->clients[i] = -1;
    for (size_t i = 0; i < AQ_COUNT(share->pidfds); i++)
        share->pidfds[i] = -1;
    share->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (share->epoll < 0) {
        (void)aq_fail_errno(err, "epoll for a GPU slice");
        free(share);
        return NULL;
    }
    if (gpu_loans_new(&share->loans, err) < 0) {
        gpu_share_free(share);
        return NULL;
    }
    return share;
}

static void grant_to(struct aq_gpu_limits_device *device, const struct gpu_grant *grant)
{
    memcpy(device->uuid, grant->uuid, sizeof(device->uuid));
    device->flags = grant->flags;
    device->processors = grant->processors;
    __atomic_store_n(&device->share, grant->share, __ATOMIC_RELAXED);
    __atomic_store_n(&device->memory_bytes, grant->memory_bytes, __ATOMIC_RELEASE);
}

static int check_grant(const struct gpu_grant *grant, struct aq_error *err)
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

int gpu_share_new(const struct gpu_grant *grants, size_t count, struct gpu_share **ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(gpu_share_freep) struct gpu_share *share = NULL;
    void *map;
    int r;

    if (count == 0 || count > AQ_GPU_DEVICES_MAX)
        return aq_fail(err, EINVAL, "%zu devices in one slice: 1 to %d are possible", count,
                       AQ_GPU_DEVICES_MAX);
    for (size_t i = 0; i < count; i++)
        if ((r = check_grant(&grants[i], err)) < 0)
            return r;
    if (!(share = alloc_share(err)))
        return -err->code;
    r = make_file("aliquot-gpu-limits", sizeof(*share->limits), F_SEAL_FUTURE_WRITE, &map, err);
    if (r < 0)
        return r;
    share->limits_fd = r;
    share->limits = map;
    r = make_file("aliquot-gpu-usage", sizeof(*share->usage), 0, &map, err);
    if (r < 0)
        return r;
    share->usage_fd = r;
    share->usage = map;
    for (size_t i = 0; i < count; i++)
        grant_to(&share->limits->devices[i], &grants[i]);
    share->limits->device_count = (uint32_t)count;
    share->limits->magic = share->usage->magic = AQ_GPU_MAGIC;
    share->limits->version = share->usage->version = AQ_GPU_VERSION;
    share->limits->size = sizeof(*share->limits);
    share->usage->size = sizeof(*share->usage);
    gpu_clocks_start(share->limits, gpu_clocks_now_ns());
    *ret = AQ_TAKE(share);
    return 0;
}

uint64_t share_start_time(pid_t pid)
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

void share_settle_loans(struct gpu_share *share)
{
    for (uint32_t device = 0; device < share->limits->device_count; device++)
        charge_set(share->usage, 0, device, gpu_loans_own(share->loans, device));
}

void share_end_slot(struct gpu_share *share, uint32_t slot)
{
    /* what others still hold is the container's first: charged twice for a moment, never not */
    if (gpu_loans_end(share->loans, slot))
        share_settle_loans(share);
    for (uint32_t device = 0; device < AQ_GPU_DEVICES_MAX; device++)
        charge_reclaim(share->usage, slot, device);
    AQ_FAULT("gpuhost.share.reclaimed");
    share->limits->owners[slot] = (struct aq_gpu_owner){ 0 };
    if (share->pidfds[slot] >= 0) {
        aq_closep(&share->pidfds[slot]);
        share->pidfds[slot] = -1;
        share->count--;
    }
    while (share->slot_end > 1 && !share->limits->owners[share->slot_end - 1].host_pid)
        share->slot_end--;
}

bool share_follow(struct gpu_share *share, uint32_t slot, int pidfd)
{
    if (pidfd < 0 || share_watch(share, pidfd, SHARE_ON_DEATH, slot) < 0)
        return false;
    share->pidfds[slot] = pidfd;
    share->count++;
    if (share->slot_end <= slot)
        share->slot_end = slot + 1;
    return true;
}

int share_open_pid(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void take_over(struct gpu_share *share)
{
    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++) {
        const struct aq_gpu_owner *owner = &share->limits->owners[slot];
        AQ_CLEANUP(aq_closep) int pidfd = owner->host_pid ? share_open_pid(owner->host_pid) : -1;

        if (!owner->host_pid)
            continue;
        if (share_start_time(owner->host_pid) == owner->start_time && share_follow(share, slot, pidfd))
            pidfd = -1;
        else
            share_end_slot(share, slot);
    }
}

/* Nobody can write the old limits any more, that is their seal: new ones begin
 * with their contents, and processes come for them when they see the old
 * agent silent.
 */
static int renew_limits(struct gpu_share *share, int old_fd, struct aq_error *err)
{
    void *map;
    int r = make_file("aliquot-gpu-limits", sizeof(*share->limits), F_SEAL_FUTURE_WRITE, &map, err);

    if (r < 0)
        return r;
    share->limits_fd = r;
    share->limits = map;
    if (pread(old_fd, map, sizeof(*share->limits), 0) != sizeof(*share->limits))
        return aq_fail_errno(err, "read the limits of a GPU slice");
    if (share->limits->magic != AQ_GPU_MAGIC || share->limits->version != AQ_GPU_VERSION
        || share->limits->device_count > AQ_GPU_DEVICES_MAX)
        return aq_fail(err, EINVAL, "the memory files are no GPU slice of version %u",
                       AQ_GPU_VERSION);
    return 0;
}

int gpu_share_keep_loans(struct gpu_share *share, const char *path, struct aq_error *err)
{
    return gpu_loans_keep(share->loans, path, err);
}

int gpu_share_adopt(int limits_fd, int usage_fd, const char *loans_path, struct gpu_share **ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(gpu_share_freep) struct gpu_share *share = NULL;
    AQ_CLEANUP(aq_closep) int limits = limits_fd;
    AQ_CLEANUP(aq_closep) int usage = usage_fd;
    struct stat st;
    int r;

    if (!(share = alloc_share(err)))
        return -err->code;
    if (fstat(limits, &st) < 0 || st.st_size != sizeof(*share->limits) || fstat(usage, &st) < 0
        || st.st_size != sizeof(*share->usage))
        return aq_fail(err, EINVAL, "the memory files of a GPU slice have another size");
    if ((r = renew_limits(share, limits, err)) < 0)
        return r;
    share->usage_fd = AQ_TAKE_FD(usage);
    share->usage = mmap(NULL, sizeof(*share->usage), PROT_READ | PROT_WRITE, MAP_SHARED,
                        share->usage_fd, 0);
    if (share->usage == MAP_FAILED) {
        share->usage = NULL;
        return aq_fail_errno(err, "map the usage of a GPU slice");
    }
    if (loans_path && (r = gpu_loans_keep(share->loans, loans_path, err)) < 0)
        return r;
    share_settle_loans(share);
    take_over(share);
    *ret = AQ_TAKE(share);
    return 0;
}

void gpu_share_free(struct gpu_share *share)
{
    if (!share)
        return;
    for (size_t i = 0; i < AQ_COUNT(share->clients); i++)
        aq_closep(&share->clients[i]);
    for (size_t i = 0; i < AQ_COUNT(share->pidfds); i++)
        aq_closep(&share->pidfds[i]);
    if (share->limits)
        (void)munmap(share->limits, sizeof(*share->limits));
    if (share->usage)
        (void)munmap(share->usage, sizeof(*share->usage));
    aq_closep(&share->limits_fd);
    aq_closep(&share->usage_fd);
    if (share->listener >= 0 && share->path)
        (void)unlink(share->path);
    aq_closep(&share->listener);
    aq_closep(&share->epoll);
    free(share->path);
    gpu_loans_free(share->loans);
    free(share);
}

void gpu_share_files(const struct gpu_share *share, int *ret_limits, int *ret_usage)
{
    *ret_limits = share->limits_fd;
    *ret_usage = share->usage_fd;
}

int gpu_share_poll_fd(const struct gpu_share *share)
{
    return share->epoll;
}

/* What is in use stays in use, and is no misuse. */
static void keep_held(struct aq_gpu_limits_device *device, uint64_t fresh_bytes)
{
    uint64_t held = AQ_MAX(device->held_bytes, device->memory_bytes);

    device->held_bytes = fresh_bytes < held ? held : 0;
}

int gpu_share_set(struct gpu_share *share, const struct gpu_grant *grant, struct aq_error *err)
{
    int r = check_grant(grant, err);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < share->limits->device_count; i++)
        if (memcmp(share->limits->devices[i].uuid, grant->uuid, sizeof(grant->uuid)) == 0) {
            keep_held(&share->limits->devices[i], grant->memory_bytes);
            grant_to(&share->limits->devices[i], grant);
            return 0;
        }
    return aq_fail(err, ENODEV, "the slice has no such device");
}

struct aq_gpu_limits *gpu_share_limits(struct gpu_share *share)
{
    return share->limits;
}

struct aq_gpu_usage *gpu_share_usage(struct gpu_share *share)
{
    return share->usage;
}

size_t gpu_share_count(const struct gpu_share *share)
{
    return share->count;
}

uint32_t gpu_share_slot_end(const struct gpu_share *share)
{
    return share->slot_end;
}

uint64_t gpu_share_borrowed(const struct gpu_share *share, uint32_t slot, uint32_t device)
{
    return gpu_loans_borrowed(share->loans, slot, device);
}

uint64_t gpu_share_repeated(const struct gpu_share *share, uint32_t device)
{
    return gpu_loans_repeated(share->loans, device);
}
