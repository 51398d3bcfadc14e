#include "gpuhost/look.h"

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

char *gpu_look_folder(struct aq_error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char *folder = runtime && *runtime ? aq_format("%s/aliquot-gpu", runtime)
                                       : aq_format("/tmp/aliquot-gpu-%u", (unsigned)getuid());
    struct stat st;

    if (!folder) {
        (void)aq_fail(err, ENOMEM, "folder for GPU sockets");
        return NULL;
    }
    if ((mkdir(folder, 0700) < 0 && errno != EEXIST) || lstat(folder, &st) < 0
        || !S_ISDIR(st.st_mode) || st.st_uid != getuid()) {
        (void)aq_fail_errno(err, "folder '%s' for GPU sockets", folder);
        free(folder);
        return NULL;
    }
    return folder;
}

static const void *map_file(int fd, size_t size)
{
    struct stat st;
    void *map;

    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < size)
        return NULL;
    map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* 1 = answered, 0 = not yet, -1 = it never will. */
static int receive(int fd, int ret_fds[2])
{
    struct aq_gpu_welcome welcome;
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { &welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
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

static bool map_region(struct gpu_view *view, int fds[2])
{
    view->limits = map_file(fds[0], sizeof(*view->limits));
    view->usage = map_file(fds[1], sizeof(*view->usage));
    aq_closep(&fds[0]);
    aq_closep(&fds[1]);
    return view->limits && view->usage && view->limits->magic == AQ_GPU_MAGIC
           && view->limits->version == AQ_GPU_VERSION;
}

void gpu_look_close(struct gpu_look *look)
{
    if (look->view.limits)
        (void)munmap((void *)look->view.limits, sizeof(*look->view.limits));
    if (look->view.usage)
        (void)munmap((void *)look->view.usage, sizeof(*look->view.usage));
    if (look->name[0] && !look->view.limits)
        aq_closep(&look->fd);
    *look = (struct gpu_look){ 0 };
}

static void ask(const char *path, const char *name, struct gpu_look *look)
{
    AQ_CLEANUP(aq_closep) int fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct aq_gpu_hello hello = { .magic = AQ_GPU_MAGIC, .version = AQ_GPU_VERSION };
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0
        || send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0)
        return;
    look->fd = AQ_TAKE_FD(fd);
    look->asked_ns = gpu_clocks_now_ns();
    (void)snprintf(look->name, sizeof(look->name), "%s", name);
}

static void hear(struct gpu_look *look, int64_t now)
{
    int fds[2] = { -1, -1 }, answered = receive(look->fd, fds);
    struct gpu_view view = { 0 };

    if (answered == 0 && now - look->asked_ns < ANSWER_NS)
        return;
    if (answered == 1 && map_region(&view, fds)) {
        aq_closep(&look->fd);
        look->view = view;
        return;
    }
    gpu_look_close(look);
}

static bool is_known(const struct gpu_look *looks, const char *name)
{
    for (int i = 0; i < GPU_LOOK_MAX; i++)
        if (strcmp(looks[i].name, name) == 0)
            return true;
    return false;
}

static void add(const char *folder, const char *name, struct gpu_look *looks)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);
    int place = 0;

    while (place < GPU_LOOK_MAX && looks[place].name[0])
        place++;
    if (path && place < GPU_LOOK_MAX)
        ask(path, name, &looks[place]);
}

static bool is_silent(const struct gpu_look *look, int64_t now)
{
    return now - __atomic_load_n(&look->view.limits->alive_ns, __ATOMIC_RELAXED) > SILENT_NS;
}

void gpu_look_scan(const char *folder, const char *skip, struct gpu_look looks[GPU_LOOK_MAX])
{
    int64_t now = gpu_clocks_now_ns();
    const struct dirent *entry;
    DIR *dir;

    for (int i = 0; i < GPU_LOOK_MAX; i++) {
        if (looks[i].name[0] && !looks[i].view.limits)
            hear(&looks[i], now);
        else if (looks[i].view.limits && is_silent(&looks[i], now))
            gpu_look_close(&looks[i]);
    }
    if (!(dir = opendir(folder)))
        return;
    while ((entry = readdir(dir)))
        if (strstr(entry->d_name, ".sock") && strlen(entry->d_name) < sizeof(looks->name)
            && (!skip || strcmp(entry->d_name, skip) != 0) && !is_known(looks, entry->d_name))
            add(folder, entry->d_name, looks);
    (void)closedir(dir);
}
