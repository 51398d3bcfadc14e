/* SPDX-License-Identifier: Apache-2.0 */
/* region.c - asking the agent for the memory files, and mapping them */
#include "gpu/region.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gpu/fork.h"
#include "gpu/lock.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif

#define REPLY_TIMEOUT_MS 5000
#define RETRY_NS 50000000
#define SILENT_NS 1000000000

struct gpu_region gpu_region;
static struct gpu_lock lock;
static int64_t tried_ns;

static int64_t region_monotonic_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t gpu_now_ns(void)
{
    return region_monotonic_ns() + gpu_region.clock_shift;
}

/* The fixed path wins wherever it exists. */
static bool region_find_socket(struct sockaddr_un *address)
{
    const char *path = AQ_GPU_SOCKET;

    if (access(path, F_OK) < 0 && errno == ENOENT)
        path = getenv("ALIQUOT_GPU_SOCKET");
    if (!path || strlen(path) >= sizeof(address->sun_path))
        return false;
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(address->sun_path, path, strlen(path));
    return true;
}

static int region_connect(void)
{
    struct sockaddr_un address;
    int fd;

    if (!region_find_socket(&address))
        return -1;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static bool region_send_hello(int fd, uint32_t slot)
{
    const struct aq_gpu_hello hello = {
        .magic = AQ_GPU_MAGIC,
        .version = AQ_GPU_VERSION,
        .own_pid = (int32_t)syscall(SYS_getpid), /* old C libraries remember the parent's */
        .slot = slot,
        .now_ns = region_monotonic_ns(),
    };

    return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello);
}

static int region_receive(int fd, struct aq_gpu_welcome *ret, int fds[2])
{
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { ret, sizeof(*ret) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    const struct cmsghdr *rights;
    ssize_t got;

    do
        got = poll(&readable, 1, REPLY_TIMEOUT_MS);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return -1;
    do
        got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    rights = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS
        || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return -1;
    memcpy(fds, CMSG_DATA(rights), 2 * sizeof(int));
    return got == sizeof(*ret) ? 0 : -1;
}

static bool region_send_request(int fd, const struct aq_gpu_loan_order *request,
                                struct aq_gpu_loan_reply *ret)
{
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    int got;

    if (send(fd, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request))
        return false;
    do
        got = poll(&readable, 1, REPLY_TIMEOUT_MS);
    while (got < 0 && errno == EINTR);
    return got > 0 && recv(fd, ret, sizeof(*ret), 0) == sizeof(*ret) && ret->magic == AQ_GPU_MAGIC
           && ret->version == AQ_GPU_VERSION;
}

bool gpu_region_request(const struct aq_gpu_loan_order *request, struct aq_gpu_loan_reply *ret)
{
    static int64_t failed_ns;
    int64_t failed = __atomic_load_n(&failed_ns, __ATOMIC_RELAXED);
    int saved = errno, fd;
    bool done;

    if (!gpu_region_is_attached() || (failed && region_monotonic_ns() - failed < SILENT_NS))
        return false;
    fd = region_connect();
    done = fd >= 0 && region_send_request(fd, request, ret);
    if (fd >= 0)
        (void)close(fd);
    __atomic_store_n(&failed_ns, done ? 0 : region_monotonic_ns(), __ATOMIC_RELAXED);
    errno = saved;
    return done;
}

/* A file that could shrink would kill its readers. */
static void *region_map_sealed(int fd, size_t size, int prot)
{
    int seals = fcntl(fd, F_GET_SEALS);
    off_t end = lseek(fd, 0, SEEK_END);
    void *mapped;

    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW)
        || end < 0 || (uint64_t)end < size)
        return NULL;
    mapped = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static bool region_map(const struct aq_gpu_welcome *welcome, const int fds[2])
{
    const struct aq_gpu_limits *limits = region_map_sealed(fds[0], sizeof(*limits), PROT_READ);
    struct aq_gpu_usage *usage = region_map_sealed(fds[1], sizeof(*usage), PROT_READ | PROT_WRITE);

    if (!limits || !usage || limits->magic != AQ_GPU_MAGIC || limits->version != AQ_GPU_VERSION
        || limits->size != sizeof(*limits) || limits->device_count > AQ_GPU_DEVICES_MAX
        || welcome->magic != AQ_GPU_MAGIC || welcome->error || welcome->slot == 0
        || welcome->slot >= AQ_GPU_SLOTS_MAX) {
        if (limits)
            (void)munmap((void *)limits, sizeof(*limits));
        if (usage)
            (void)munmap(usage, sizeof(*usage));
        return false;
    }
    gpu_region.usage = usage;
    gpu_region.slot = welcome->slot;
    gpu_region.device_count = limits->device_count;
    gpu_region.clock_shift = welcome->now_ns - region_monotonic_ns();
    /* two clocks of one kind differ by the packet's way; a namespace by more */
    if (gpu_region.clock_shift > -1000000000 && gpu_region.clock_shift < 1000000000)
        gpu_region.clock_shift = 0;
    __atomic_store_n(&gpu_region.limits, limits, __ATOMIC_RELEASE);
    return true;
}

static bool region_handshake(uint32_t slot)
{
    struct aq_gpu_welcome welcome = { 0 };
    int fd = region_connect(), fds[2] = { -1, -1 };
    bool attached;

    attached = fd >= 0 && region_send_hello(fd, slot) && region_receive(fd, &welcome, fds) == 0
               && region_map(&welcome, fds);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    if (fd >= 0)
        (void)close(fd);
    return attached;
}

bool gpu_region_attach(void)
{
    int saved = errno;
    int64_t now;

    if (gpu_region_is_attached())
        return true;
    gpu_fork_watch();
    gpu_lock_take(&lock);
    now = region_monotonic_ns();
    if (!gpu_region_is_attached() && (!tried_ns || now - tried_ns >= RETRY_NS)) {
        (void)region_handshake(0);
        tried_ns = region_monotonic_ns();
    }
    gpu_lock_give(&lock);
    errno = saved;
    return gpu_region_is_attached();
}

bool gpu_region_is_alive(void)
{
    return gpu_region_is_attached()
           && gpu_now_ns() - __atomic_load_n(&gpu_region.limits->alive_ns, __ATOMIC_RELAXED)
                  < SILENT_NS;
}

/* The old limits stay mapped: another thread may be reading them. */
void gpu_region_renew(void)
{
    int saved = errno;

    if (!gpu_region_is_attached() || gpu_region_is_alive()
        || gpu_now_ns() - __atomic_load_n(&tried_ns, __ATOMIC_RELAXED) < SILENT_NS)
        return;
    gpu_lock_take(&lock);
    tried_ns = region_monotonic_ns();
    (void)region_handshake(gpu_region.slot);
    gpu_lock_give(&lock);
    errno = saved;
}

void gpu_region_count_unknown(void)
{
    if (gpu_region_is_attached())
        (void)__atomic_fetch_add(&gpu_region.usage->unknown_symbols, 1, __ATOMIC_RELAXED);
}

/* The parent's mappings stay until the child attaches or ends: another thread
 * of the parent may have been anywhere when it forked.
 */
void gpu_region_after_fork(void)
{
    gpu_region = (struct gpu_region){ 0 };
    lock.taken = 0;
    tried_ns = 0;
}
