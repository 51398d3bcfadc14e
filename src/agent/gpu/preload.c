/* SPDX-License-Identifier: Apache-2.0 */
/* preload.c - what the library needs of an image: a loader that loads it first */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/gpu/gpu_internal.h"
#include "base/strbuf.h"

#define PRELOAD "etc/ld.so.preload"
#define PRELOAD_MAX 65536

#if defined(__x86_64__)
#define LOADER "lib64/ld-linux-x86-64.so.2"
#define MUSL "lib/ld-musl-x86_64.so.1"
#elif defined(__aarch64__)
#define LOADER "lib/ld-linux-aarch64.so.1"
#define MUSL "lib/ld-musl-aarch64.so.1"
#else
#error "which loader do programs have here?"
#endif

int gpu_check_image(const struct image *image, struct aq_error *err)
{
    if (image_has(image, "/" LOADER) || image_has(image, "/usr/" LOADER))
        return 0;
    return aq_fail_as(err, ENOTSUP, "unenforceable", "image",
                      "a part of a GPU cannot be held to in this image: %s; take a whole GPU, or "
                      "an image with glibc",
                      image_has(image, "/" MUSL) || image_has(image, "/usr/" MUSL)
                          ? "its loader is musl's, which reads no /etc/ld.so.preload"
                          : "it has no /" LOADER);
}

/* A file of one layer, by a path that cannot lead out of it; or -errno. */
static int preload_open_in_layer(const char *layer, const char *path)
{
    const struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                                  .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    AQ_CLEANUP(aq_closep) int root = open(layer, O_PATH | O_DIRECTORY | O_CLOEXEC);
    long fd = root < 0 ? -1 : syscall(SYS_openat2, root, path, &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

/* The file of the topmost layer that has one; a device there hides those below. */
static int preload_read_image_file(const struct image *image, struct strbuf *out,
                                   struct aq_error *err)
{
    for (size_t i = 0; i < image->lower_count; i++) {
        AQ_CLEANUP(aq_closep) int fd = preload_open_in_layer(image->lowers[i], PRELOAD);
        char bytes[4096];
        struct stat st;
        ssize_t got;

        if (fd == -ENOENT || fd == -ENOTDIR)
            continue;
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
            return 0;
        if (st.st_size > PRELOAD_MAX)
            return aq_fail_field(err, EFBIG, "image", "its /" PRELOAD " has more than %d bytes",
                                 PRELOAD_MAX);
        while ((got = read(fd, bytes, sizeof(bytes))) > 0 && out->len <= PRELOAD_MAX)
            strbuf_add(out, bytes, (size_t)got);
        return 0;
    }
    return 0;
}

int gpu_preload_text(const struct image *image, struct strbuf *out, struct aq_error *err)
{
    int r = preload_read_image_file(image, out, err);

    if (r < 0)
        return r;
    if (out->len && out->data[out->len - 1] != '\n')
        strbuf_addc(out, '\n');
    strbuf_adds(out, GPU_LIBRARY_INSIDE "\n");
    return 0;
}
