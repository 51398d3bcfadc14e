#include "gpuhost/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"

#define ANSWER_MS 500
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

static int ask(int fd, int ret_fds[2])
{
    const struct aq_gpu_hello hello = { .magic = AQ_GPU_MAGIC, .version = AQ_GPU_VERSION };
    struct aq_gpu_welcome welcome;
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { &welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    struct cmsghdr *rights;

    if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0 || poll(&readable, 1, ANSWER_MS) <= 0
        || recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != sizeof(welcome))
        return -EPROTO;
    rights = CMSG_FIRSTHDR(&message);
    if (!rights || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return -EPROTO;
    memcpy(ret_fds, CMSG_DATA(rights), 2 * sizeof(int));
    return 0;
}

int gpu_look_open(const char *path, struct gpu_view *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct gpu_view view = { 0 };
    int fds[2] = { -1, -1 }, r;

    if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
        return aq_fail(err, EINVAL, "GPU socket '%s'", path);
    memcpy(address.sun_path, path, strlen(path));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return aq_fail_errno(err, "connect to '%s'", path);
    r = ask(fd, fds);
    if (r == 0) {
        view.limits = map_file(fds[0], sizeof(*view.limits));
        view.usage = map_file(fds[1], sizeof(*view.usage));
    }
    aq_closep(&fds[0]);
    aq_closep(&fds[1]);
    if (!view.limits || !view.usage || view.limits->magic != AQ_GPU_MAGIC
        || view.limits->version != AQ_GPU_VERSION) {
        gpu_look_close(&view);
        return aq_fail(err, EPROTO, "'%s' is no GPU socket of this version", path);
    }
    *ret = view;
    return 0;
}

void gpu_look_close(struct gpu_view *view)
{
    if (view->limits)
        (void)munmap((void *)view->limits, sizeof(*view->limits));
    if (view->usage)
        (void)munmap((void *)view->usage, sizeof(*view->usage));
    *view = (struct gpu_view){ 0 };
}

static bool is_known(const struct gpu_look *looks, const char *name)
{
    for (int i = 0; i < GPU_LOOK_MAX; i++)
        if (looks[i].view.limits && strcmp(looks[i].name, name) == 0)
            return true;
    return false;
}

static void add(const char *folder, const char *name, struct gpu_look *looks)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);

    for (int i = 0; path && i < GPU_LOOK_MAX; i++) {
        if (looks[i].view.limits)
            continue;
        if (gpu_look_open(path, &looks[i].view, NULL) == 0)
            (void)snprintf(looks[i].name, sizeof(looks[i].name), "%s", name);
        return;
    }
}

void gpu_look_scan(const char *folder, const char *skip, struct gpu_look looks[GPU_LOOK_MAX])
{
    int64_t now = gpu_clocks_now_ns();
    const struct dirent *entry;
    DIR *dir;

    for (int i = 0; i < GPU_LOOK_MAX; i++)
        if (looks[i].view.limits
            && now - __atomic_load_n(&looks[i].view.limits->alive_ns, __ATOMIC_RELAXED) > SILENT_NS)
            gpu_look_close(&looks[i].view);
    if (!(dir = opendir(folder)))
        return;
    while ((entry = readdir(dir)))
        if (strstr(entry->d_name, ".sock") && strlen(entry->d_name) < sizeof(looks->name)
            && (!skip || strcmp(entry->d_name, skip) != 0) && !is_known(looks, entry->d_name))
            add(folder, entry->d_name, looks);
    (void)closedir(dir);
}
