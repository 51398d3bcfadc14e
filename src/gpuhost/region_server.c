/* SPDX-License-Identifier: Apache-2.0 */
/* region_server.c - what the processes of a container say on its socket, and their deaths */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "gpu/charge.h"
#include "gpuhost/time_share.h"
#include "gpuhost/region_host_internal.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define EVENTS_MAX 64

int gpu_region_host_listen(struct gpu_region_host *host, const char *path, struct aq_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(address.sun_path))
        return aq_fail(err, ENAMETOOLONG, "socket path '%s' is longer than %zu bytes", path,
                       sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path));
    free(host->path);
    host->path = aq_format("%s", path);
    host->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (host->listener < 0)
        return aq_fail_errno(err, "socket for a GPU slice");
    (void)unlink(path);
    if (bind(host->listener, (const struct sockaddr *)&address, sizeof(address)) < 0
        || chmod(path, 0666) < 0 /* any user of the container */
        || listen(host->listener, 1024) < 0
        || region_host_watch(host, host->listener, REGION_HOST_ON_LISTENER, 0) < 0)
        return aq_fail_errno(err, "listen on '%s'", path);
    return 0;
}

int gpu_region_peer(int socket, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int pidfd = -1;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
        return -1;
    *ret_pid = peer.pid;
    len = sizeof(pidfd);
    /* Linux before 6.5; a peer that has ended is no other that has its pid by now */
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0 && errno == ENOPROTOOPT)
        pidfd = region_host_open_pid(peer.pid);
    if (pidfd >= 0)
        (void)fcntl(pidfd, F_SETFD, FD_CLOEXEC);
    return pidfd;
}

/* A slot for 'pid'. A process that has one and asks again has executed another
 * program: what the old one held is gone.
 */
static uint32_t region_server_find_slot(struct gpu_region_host *host, pid_t pid)
{
    uint32_t free_slot = 0;

    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++) {
        if (host->limits->owners[slot].host_pid == pid) {
            region_host_end_slot(host, slot);
            return slot;
        }
        if (!free_slot && !host->limits->owners[slot].host_pid)
            free_slot = slot;
    }
    return free_slot;
}

static int region_server_give_slot(struct gpu_region_host *host, int socket, int32_t own_pid,
                                   uint32_t old)
{
    AQ_CLEANUP(aq_closep) int pidfd = -1;
    pid_t pid = 0;
    uint32_t slot;

    pidfd = gpu_region_peer(socket, &pid);
    if (pidfd < 0)
        return -ESRCH;
    if (old && old < AQ_GPU_SLOTS_MAX && host->limits->owners[old].host_pid == pid)
        return (int)old;
    slot = region_server_find_slot(host, pid);
    if (!slot)
        return -EAGAIN;
    host->limits->owners[slot] = (struct aq_gpu_owner){ .host_pid = pid,
                                                        .own_pid = own_pid,
                                                        .start_time = region_host_start_time(pid) };
    AQ_FAULT("gpuhost.share.owned");
    if (!region_host_follow(host, slot, pidfd)) {
        host->limits->owners[slot] = (struct aq_gpu_owner){ 0 };
        return -ESRCH;
    }
    pidfd = -1;
    return (int)slot;
}

/* 'host' NULL: it is an error. */
static int region_server_reply(const struct gpu_region_host *host, int socket, int result)
{
    const int fds[2] = { host ? host->limits_fd : -1, host ? host->usage_fd : -1 };
    const struct aq_gpu_welcome welcome = {
        .magic = AQ_GPU_MAGIC,
        .version = AQ_GPU_VERSION,
        .error = result < 0 ? -result : 0,
        .slot = result < 0 ? 0 : (uint32_t)result,
        .now_ns = gpu_monotonic_ns(),
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
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&control.align), fds, sizeof(fds));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int region_server_answer_hello(struct gpu_region_host *host, int socket, const void *bytes)
{
    struct aq_gpu_hello hello;
    int result, sent;

    memcpy(&hello, bytes, sizeof(hello));
    if (hello.magic != AQ_GPU_MAGIC || hello.version != AQ_GPU_VERSION)
        result = -EPROTO;
    else
        result = hello.own_pid > 0
                     ? region_server_give_slot(host, socket, hello.own_pid, hello.slot)
                     : 0;
    sent = region_server_reply(host, socket, result);
    if (sent < 0 && result > 0 && !hello.slot)
        region_host_end_slot(host, (uint32_t)result);
    return sent < 0 ? sent : result;
}

/* The slot of the process at the other end; 0 = it has none. */
static uint32_t region_server_slot_of_peer(const struct gpu_region_host *host, int socket)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
        return 0;
    for (uint32_t slot = 1; slot < host->slot_end; slot++)
        if (host->limits->owners[slot].host_pid == peer.pid)
            return slot;
    return 0;
}

/* Nobody exports more than it is charged, so the table cannot be inflated. Exporting what
 * is shared already changes no sum.
 */
static int region_server_export(struct gpu_region_host *host, uint32_t slot,
                                const struct aq_gpu_loan_order *request)
{
    uint64_t charged, exported;

    if (request->device >= host->limits->device_count || request->token > INT64_MAX)
        return -EINVAL;
    charged = charge_of_slot(host->usage, slot, request->device);
    exported = gpu_shared_allocs_charged(host->shared_allocs, slot, request->device);
    if (!gpu_shared_allocs_has(host->shared_allocs, request->token)
        && request->granules > charged - AQ_MIN(exported, charged))
        return -EINVAL;
    return gpu_shared_allocs_export(host->shared_allocs, slot, request->device, request->token,
                                    request->granules);
}

static int region_server_execute(struct gpu_region_host *host, uint32_t slot,
                                 const struct aq_gpu_loan_order *request,
                                 struct aq_gpu_loan_reply *ret)
{
    int r;

    if (request->magic != AQ_GPU_MAGIC || request->version != AQ_GPU_VERSION)
        return -EPROTO;
    if (!slot)
        return -ESRCH;
    switch (request->kind) {
    case AQ_GPU_LOAN_OFFER:
        return region_server_export(host, slot, request);
    case AQ_GPU_LOAN_JOIN:
        return gpu_shared_allocs_join(host->shared_allocs, slot, request->token, &ret->device,
                                      &ret->granules);
    case AQ_GPU_LOAN_LEAVE:
        r = gpu_shared_allocs_leave(host->shared_allocs, slot, request->token);
        region_host_charge_container(host);
        return r;
    default:
        return -EINVAL;
    }
}

static int region_server_answer_request(struct gpu_region_host *host, int socket, const void *bytes)
{
    struct aq_gpu_loan_order request;
    struct aq_gpu_loan_reply answer = { .magic = AQ_GPU_MAGIC, .version = AQ_GPU_VERSION };
    int r;

    memcpy(&request, bytes, sizeof(request));
    r = region_server_execute(host, region_server_slot_of_peer(host, socket), &request, &answer);
    AQ_FAULT("gpuhost.share.exported");
    answer.error = -r;
    return send(socket, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : r;
}

int gpu_region_refuse(int socket, size_t len, int error)
{
    const struct aq_gpu_loan_reply answer = { .magic = AQ_GPU_MAGIC,
                                              .version = AQ_GPU_VERSION,
                                              .error = error };

    if (len == sizeof(struct aq_gpu_hello))
        return region_server_reply(NULL, socket, -error);
    return send(socket, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int gpu_region_host_answer(struct gpu_region_host *host, int socket, const void *bytes, size_t len)
{
    if (len == sizeof(struct aq_gpu_hello))
        return region_server_answer_hello(host, socket, bytes);
    if (len == sizeof(struct aq_gpu_loan_order))
        return region_server_answer_request(host, socket, bytes);
    return -EPROTO;
}

/* One that is free, else that of the oldest. */
static uint32_t region_server_find_client_index(struct gpu_region_host *host)
{
    uint32_t place = host->next_client;

    for (uint32_t i = 0;
         i < REGION_HOST_WAITING_MAX && host->clients[place % REGION_HOST_WAITING_MAX] >= 0; i++)
        place++;
    host->next_client = (place + 1) % REGION_HOST_WAITING_MAX;
    return place % REGION_HOST_WAITING_MAX;
}

static void region_server_on_listener(struct gpu_region_host *host)
{
    int fd = accept4(host->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uint32_t place;

    if (fd < 0)
        return;
    place = region_server_find_client_index(host);
    if (host->clients[place] >= 0) /* the oldest, which never said a word */
        aq_closep(&host->clients[place]);
    host->clients[place] = fd;
    if (region_host_watch(host, fd, REGION_HOST_ON_CLIENT, place) < 0)
        aq_closep(&host->clients[place]);
}

static void region_server_on_client(struct gpu_region_host *host, uint32_t place)
{
    char bytes[sizeof(struct aq_gpu_loan_order) + 1]; /* the longest, and no longer */
    ssize_t got;

    if (place >= REGION_HOST_WAITING_MAX || host->clients[place] < 0)
        return;
    got = recv(host->clients[place], bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        (void)gpu_region_host_answer(host, host->clients[place], bytes, (size_t)got);
    aq_closep(&host->clients[place]);
}

void gpu_region_host_dispatch(struct gpu_region_host *host)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(host->epoll, events, EVENTS_MAX, 0);

    /* deaths first: they make room */
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 >> 32 == REGION_HOST_ON_DEATH
            && host->pidfds[(uint32_t)events[i].data.u64 % AQ_GPU_SLOTS_MAX] >= 0)
            region_host_end_slot(host, (uint32_t)events[i].data.u64 % AQ_GPU_SLOTS_MAX);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 >> 32 == REGION_HOST_ON_LISTENER)
            region_server_on_listener(host);
        else if (events[i].data.u64 >> 32 == REGION_HOST_ON_CLIENT)
            region_server_on_client(host, (uint32_t)events[i].data.u64);
    }
}
