/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.c - finding other slices by their sockets, and mapping their regions */
#include "gpuhost/discovery.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"

#define ANSWER_NS 2000000000
#define SILENT_NS 3000000000

char *gpu_discovery_directory(struct aq_error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char *directory = runtime && *runtime ? aq_format("%s/aliquot-gpu", runtime)
                                          : aq_format("/tmp/aliquot-gpu-%u", (unsigned)getuid());
    struct stat st;

    if ((mkdir(directory, 0700) < 0 && errno != EEXIST) || lstat(directory, &st) < 0
        || !S_ISDIR(st.st_mode) || st.st_uid != getuid()) {
        (void)aq_fail_errno(err, "folder '%s' for GPU sockets", directory);
        free(directory);
        return NULL;
    }
    return directory;
}

static const void *discovery_map_file(int fd, size_t size)
{
    struct stat st;
    void *map;

    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < size)
        return NULL;
    map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* 1 = answered, 0 = not yet, -1 = it never will. */
static int discovery_receive(int fd, int ret_fds[2])
{
    struct aq_gpu_welcome welcome;
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { &welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    struct cmsghdr *rights;
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    rights = CMSG_FIRSTHDR(&message);
    if (got != sizeof(welcome) || !rights || rights->cmsg_type != SCM_RIGHTS
        || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return -1;
    memcpy(ret_fds, CMSG_DATA(rights), 2 * sizeof(int));
    return 1;
}

static bool discovery_map_region(struct gpu_region_view *view, int fds[2])
{
    view->limits = discovery_map_file(fds[0], sizeof(*view->limits));
    view->usage = discovery_map_file(fds[1], sizeof(*view->usage));
    aq_closep(&fds[0]);
    aq_closep(&fds[1]);
    return view->limits && view->usage && view->limits->magic == AQ_GPU_MAGIC
           && view->limits->version == AQ_GPU_VERSION;
}

void gpu_peer_close(struct gpu_peer *peer)
{
    if (peer->view.limits)
        (void)munmap((void *)peer->view.limits, sizeof(*peer->view.limits));
    if (peer->view.usage)
        (void)munmap((void *)peer->view.usage, sizeof(*peer->view.usage));
    if (peer->name[0] && !peer->view.limits)
        aq_closep(&peer->fd);
    *peer = (struct gpu_peer){ 0 };
}

static void discovery_connect(const char *path, const char *name, struct gpu_peer *peer)
{
    AQ_CLEANUP(aq_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                          0);
    const struct aq_gpu_hello hello = { .magic = AQ_GPU_MAGIC, .version = AQ_GPU_VERSION };
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0
        || send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0)
        return;
    peer->fd = AQ_TAKE_FD(fd);
    peer->asked_ns = gpu_monotonic_ns();
    (void)snprintf(peer->name, sizeof(peer->name), "%s", name);
}

static void discovery_read_reply(struct gpu_peer *peer, int64_t now)
{
    int fds[2] = { -1, -1 }, answered = discovery_receive(peer->fd, fds);
    struct gpu_region_view view = { 0 };

    if (answered == 0 && now - peer->asked_ns < ANSWER_NS)
        return;
    if (answered == 1 && discovery_map_region(&view, fds)) {
        aq_closep(&peer->fd);
        peer->view = view;
        return;
    }
    gpu_peer_close(peer);
}

static bool discovery_is_known(const struct gpu_peer *peers, const char *name)
{
    for (int i = 0; i < GPU_PEERS_MAX; i++)
        if (strcmp(peers[i].name, name) == 0)
            return true;
    return false;
}

static void discovery_add(const char *directory, const char *name, struct gpu_peer *peers)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, name);
    int place = 0;

    while (place < GPU_PEERS_MAX && peers[place].name[0])
        place++;
    if (place < GPU_PEERS_MAX)
        discovery_connect(path, name, &peers[place]);
}

static bool discovery_is_silent(const struct gpu_peer *peer, int64_t now)
{
    return now - __atomic_load_n(&peer->view.limits->alive_ns, __ATOMIC_RELAXED) > SILENT_NS;
}

void gpu_discovery_scan(const char *directory, const char *skip,
                        struct gpu_peer peers[GPU_PEERS_MAX])
{
    int64_t now = gpu_monotonic_ns();
    const struct dirent *entry;
    DIR *dir;

    for (int i = 0; i < GPU_PEERS_MAX; i++) {
        if (peers[i].name[0] && !peers[i].view.limits)
            discovery_read_reply(&peers[i], now);
        else if (peers[i].view.limits && discovery_is_silent(&peers[i], now))
            gpu_peer_close(&peers[i]);
    }
    if (!(dir = opendir(directory)))
        return;
    while ((entry = readdir(dir)))
        if (strstr(entry->d_name, ".sock") && strlen(entry->d_name) < sizeof(peers->name)
            && (!skip || strcmp(entry->d_name, skip) != 0)
            && !discovery_is_known(peers, entry->d_name))
            discovery_add(directory, entry->d_name, peers);
    (void)closedir(dir);
}
