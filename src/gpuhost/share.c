#include "gpuhost/share.h"

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
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define WAITING_MAX 64 /* connected and not yet heard of */
#define EVENTS_MAX 64

/* What an epoll event is about: the kind above, the number below. */
enum { ON_LISTENER, ON_CLIENT, ON_DEATH };

struct gpu_share {
    int limits_fd, usage_fd, epoll, listener;
    struct aq_gpu_limits *limits;
    struct aq_gpu_usage *usage;
    char *path;
    int clients[WAITING_MAX];
    uint32_t next_client;
    int pidfds[AQ_GPU_SLOTS_MAX]; /* -1 = free */
    size_t count;
    uint32_t slot_end; /* no slot from here on is owned; at least 1 */
};

static int watch(struct gpu_share *share, int fd, uint64_t kind, uint64_t number)
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

/* Field 22 of /proc/PID/stat, behind the name in brackets; 0 = no such process. */
static uint64_t start_time_of(pid_t pid)
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

/* Everything the slot held goes back; the slot is free. */
static void end_slot(struct gpu_share *share, uint32_t slot)
{
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

/* Watch the process of an owned slot; false = it is dead. */
static bool follow(struct gpu_share *share, uint32_t slot, int pidfd)
{
    if (pidfd < 0 || watch(share, pidfd, ON_DEATH, slot) < 0)
        return false;
    share->pidfds[slot] = pidfd;
    share->count++;
    if (share->slot_end <= slot)
        share->slot_end = slot + 1;
    return true;
}

static int open_pid(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void take_over(struct gpu_share *share)
{
    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++) {
        const struct aq_gpu_owner *owner = &share->limits->owners[slot];
        AQ_CLEANUP(aq_closep) int pidfd = owner->host_pid ? open_pid(owner->host_pid) : -1;

        if (!owner->host_pid)
            continue;
        if (start_time_of(owner->host_pid) == owner->start_time && follow(share, slot, pidfd))
            pidfd = -1;
        else
            end_slot(share, slot);
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

int gpu_share_adopt(int limits_fd, int usage_fd, struct gpu_share **ret, struct aq_error *err)
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
    free(share);
}

void gpu_share_files(const struct gpu_share *share, int *ret_limits, int *ret_usage)
{
    *ret_limits = share->limits_fd;
    *ret_usage = share->usage_fd;
}

int gpu_share_listen(struct gpu_share *share, const char *path, struct aq_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(address.sun_path))
        return aq_fail(err, ENAMETOOLONG, "socket path '%s' is longer than %zu bytes", path,
                       sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path));
    free(share->path);
    share->path = aq_format("%s", path);
    share->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (!share->path || share->listener < 0)
        return aq_fail_errno(err, "socket for a GPU slice");
    (void)unlink(path);
    if (bind(share->listener, (const struct sockaddr *)&address, sizeof(address)) < 0
        || chmod(path, 0666) < 0 /* any user of the container */
        || listen(share->listener, 1024) < 0 || watch(share, share->listener, ON_LISTENER, 0) < 0)
        return aq_fail_errno(err, "listen on '%s'", path);
    return 0;
}

int gpu_share_poll_fd(const struct gpu_share *share)
{
    return share->epoll;
}

static int peer_of(int socket, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int pidfd = -1;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
        return -1;
    *ret_pid = peer.pid;
    len = sizeof(pidfd);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0)
        pidfd = open_pid(peer.pid); /* Linux before 6.5 */
    if (pidfd >= 0)
        (void)fcntl(pidfd, F_SETFD, FD_CLOEXEC);
    return pidfd;
}

/* A slot for 'pid'. A process that has one and asks again has executed another
 * program: what the old one held is gone.
 */
static uint32_t find_slot(struct gpu_share *share, pid_t pid)
{
    uint32_t free_slot = 0;

    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++) {
        if (share->limits->owners[slot].host_pid == pid) {
            end_slot(share, slot);
            return slot;
        }
        if (!free_slot && !share->limits->owners[slot].host_pid)
            free_slot = slot;
    }
    return free_slot;
}

static int give_slot(struct gpu_share *share, int socket, int32_t own_pid, uint32_t old)
{
    AQ_CLEANUP(aq_closep) int pidfd = -1;
    pid_t pid = 0;
    uint32_t slot;

    pidfd = peer_of(socket, &pid);
    if (pidfd < 0)
        return -ESRCH;
    if (old && old < AQ_GPU_SLOTS_MAX && share->limits->owners[old].host_pid == pid)
        return (int)old;
    slot = find_slot(share, pid);
    if (!slot)
        return -EAGAIN;
    share->limits->owners[slot] = (struct aq_gpu_owner){
        .host_pid = pid, .own_pid = own_pid, .start_time = start_time_of(pid)
    };
    AQ_FAULT("gpuhost.share.owned");
    if (!follow(share, slot, pidfd)) {
        share->limits->owners[slot] = (struct aq_gpu_owner){ 0 };
        return -ESRCH;
    }
    pidfd = -1;
    return (int)slot;
}

static int reply(const struct gpu_share *share, int socket, int result)
{
    const int fds[2] = { share->limits_fd, share->usage_fd };
    const struct aq_gpu_welcome welcome = {
        .magic = AQ_GPU_MAGIC,
        .version = AQ_GPU_VERSION,
        .error = result < 0 ? -result : 0,
        .slot = result < 0 ? 0 : (uint32_t)result,
        .now_ns = gpu_clocks_now_ns(),
    };
    union {
        char bytes[CMSG_SPACE(sizeof(fds))];
        struct cmsghdr align;
    } control = { 0 };
    struct iovec part = { (void *)&welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    if (result >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fds)),
                                          .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&control.align), fds, sizeof(fds));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int gpu_share_answer(struct gpu_share *share, int socket, const void *bytes, size_t len)
{
    struct aq_gpu_hello hello;
    int result, sent;

    if (len != sizeof(hello))
        return -EPROTO;
    memcpy(&hello, bytes, sizeof(hello));
    if (hello.magic != AQ_GPU_MAGIC || hello.version != AQ_GPU_VERSION)
        result = -EPROTO;
    else
        result = hello.own_pid > 0 ? give_slot(share, socket, hello.own_pid, hello.slot) : 0;
    sent = reply(share, socket, result);
    if (sent < 0 && result > 0 && !hello.slot)
        end_slot(share, (uint32_t)result);
    return sent < 0 ? sent : result;
}

static void on_listener(struct gpu_share *share)
{
    int fd = accept4(share->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uint32_t place = share->next_client++ % WAITING_MAX;

    if (fd < 0)
        return;
    if (share->clients[place] >= 0) /* the oldest, which never said a word */
        aq_closep(&share->clients[place]);
    share->clients[place] = fd;
    if (watch(share, fd, ON_CLIENT, place) < 0)
        aq_closep(&share->clients[place]);
}

static void on_client(struct gpu_share *share, uint32_t place)
{
    char bytes[sizeof(struct aq_gpu_hello) + 1];
    ssize_t got;

    if (place >= WAITING_MAX || share->clients[place] < 0)
        return;
    got = recv(share->clients[place], bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        (void)gpu_share_answer(share, share->clients[place], bytes, (size_t)got);
    aq_closep(&share->clients[place]);
}

void gpu_share_dispatch(struct gpu_share *share)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(share->epoll, events, EVENTS_MAX, 0);

    /* deaths first: they make room */
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 >> 32 == ON_DEATH
            && share->pidfds[(uint32_t)events[i].data.u64 % AQ_GPU_SLOTS_MAX] >= 0)
            end_slot(share, (uint32_t)events[i].data.u64 % AQ_GPU_SLOTS_MAX);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 >> 32 == ON_LISTENER)
            on_listener(share);
        else if (events[i].data.u64 >> 32 == ON_CLIENT)
            on_client(share, (uint32_t)events[i].data.u64);
    }
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
