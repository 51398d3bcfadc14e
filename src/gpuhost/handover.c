/* handover.c - what the processes of a container say on its socket, and their deaths */
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
#include "gpuhost/clocks.h"
#include "gpuhost/share_private.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define EVENTS_MAX 64

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
        || listen(share->listener, 1024) < 0 || share_watch(share, share->listener, SHARE_ON_LISTENER, 0) < 0)
        return aq_fail_errno(err, "listen on '%s'", path);
    return 0;
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
        pidfd = share_open_pid(peer.pid); /* Linux before 6.5 */
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
            share_end_slot(share, slot);
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
        .host_pid = pid, .own_pid = own_pid, .start_time = share_start_time(pid)
    };
    AQ_FAULT("gpuhost.share.owned");
    if (!share_follow(share, slot, pidfd)) {
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

static int answer_hello(struct gpu_share *share, int socket, const void *bytes)
{
    struct aq_gpu_hello hello;
    int result, sent;

    memcpy(&hello, bytes, sizeof(hello));
    if (hello.magic != AQ_GPU_MAGIC || hello.version != AQ_GPU_VERSION)
        result = -EPROTO;
    else
        result = hello.own_pid > 0 ? give_slot(share, socket, hello.own_pid, hello.slot) : 0;
    sent = reply(share, socket, result);
    if (sent < 0 && result > 0 && !hello.slot)
        share_end_slot(share, (uint32_t)result);
    return sent < 0 ? sent : result;
}

/* The slot of the process at the other end; 0 = it has none. */
static uint32_t slot_of_peer(const struct gpu_share *share, int socket)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
        return 0;
    for (uint32_t slot = 1; slot < share->slot_end; slot++)
        if (share->limits->owners[slot].host_pid == peer.pid)
            return slot;
    return 0;
}

/* Nobody lends more than he is charged, so books cannot be filled with air. Whoever
 * offers what is a loan already, perhaps its own, changes no sum.
 */
static int offer(struct gpu_share *share, uint32_t slot, const struct aq_gpu_loan_order *order)
{
    uint64_t charged, lent;

    if (order->device >= share->limits->device_count || order->token > INT64_MAX)
        return -EINVAL;
    charged = charge_of_slot(share->usage, slot, order->device);
    lent = gpu_loans_paid(share->loans, slot, order->device);
    if (!gpu_loans_has(share->loans, order->token)
        && order->granules > charged - AQ_MIN(lent, charged))
        return -EINVAL;
    return gpu_loans_offer(share->loans, slot, order->device, order->token, order->granules);
}

static int follow_order(struct gpu_share *share, uint32_t slot,
                        const struct aq_gpu_loan_order *order, struct aq_gpu_loan_reply *ret)
{
    int r;

    if (order->magic != AQ_GPU_MAGIC || order->version != AQ_GPU_VERSION)
        return -EPROTO;
    if (!slot)
        return -ESRCH;
    switch (order->kind) {
    case AQ_GPU_LOAN_OFFER:
        return offer(share, slot, order);
    case AQ_GPU_LOAN_JOIN:
        return gpu_loans_join(share->loans, slot, order->token, &ret->device, &ret->granules);
    case AQ_GPU_LOAN_LEAVE:
        r = gpu_loans_leave(share->loans, slot, order->token);
        share_settle_loans(share);
        return r;
    default:
        return -EINVAL;
    }
}

static int answer_order(struct gpu_share *share, int socket, const void *bytes)
{
    struct aq_gpu_loan_order order;
    struct aq_gpu_loan_reply answer = { .magic = AQ_GPU_MAGIC, .version = AQ_GPU_VERSION };
    int r;

    memcpy(&order, bytes, sizeof(order));
    r = follow_order(share, slot_of_peer(share, socket), &order, &answer);
    AQ_FAULT("gpuhost.share.lent");
    answer.error = -r;
    return send(socket, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : r;
}

int gpu_share_answer(struct gpu_share *share, int socket, const void *bytes, size_t len)
{
    if (len == sizeof(struct aq_gpu_hello))
        return answer_hello(share, socket, bytes);
    if (len == sizeof(struct aq_gpu_loan_order))
        return answer_order(share, socket, bytes);
    return -EPROTO;
}

/* One that is free, else that of the oldest. */
static uint32_t find_place(struct gpu_share *share)
{
    uint32_t place = share->next_client;

    for (uint32_t i = 0; i < SHARE_WAITING_MAX && share->clients[place % SHARE_WAITING_MAX] >= 0; i++)
        place++;
    share->next_client = (place + 1) % SHARE_WAITING_MAX;
    return place % SHARE_WAITING_MAX;
}

static void on_listener(struct gpu_share *share)
{
    int fd = accept4(share->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uint32_t place;

    if (fd < 0)
        return;
    place = find_place(share);
    if (share->clients[place] >= 0) /* the oldest, which never said a word */
        aq_closep(&share->clients[place]);
    share->clients[place] = fd;
    if (share_watch(share, fd, SHARE_ON_CLIENT, place) < 0)
        aq_closep(&share->clients[place]);
}

static void on_client(struct gpu_share *share, uint32_t place)
{
    char bytes[sizeof(struct aq_gpu_loan_order) + 1]; /* the longest, and no longer */
    ssize_t got;

    if (place >= SHARE_WAITING_MAX || share->clients[place] < 0)
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
        if (events[i].data.u64 >> 32 == SHARE_ON_DEATH
            && share->pidfds[(uint32_t)events[i].data.u64 % AQ_GPU_SLOTS_MAX] >= 0)
            share_end_slot(share, (uint32_t)events[i].data.u64 % AQ_GPU_SLOTS_MAX);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 >> 32 == SHARE_ON_LISTENER)
            on_listener(share);
        else if (events[i].data.u64 >> 32 == SHARE_ON_CLIENT)
            on_client(share, (uint32_t)events[i].data.u64);
    }
}
