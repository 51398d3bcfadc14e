/* SPDX-License-Identifier: Apache-2.0 */
/* Layers' archives: whatever they hold, nothing appears beside the directory that
 * they are unpacked into. Needs root for owners and devices; without it less
 * is reached.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/layer_unpack.h"
#include "base/fs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64] = "/dev/shm/aq-fuzz-layer-XXXXXX"; /* in memory: disks stall */
static int at = -1;

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void remove_folder(void)
{
    (void)fs_remove_tree(AT_FDCWD, folder, NULL);
}

static int count_entries(void)
{
    DIR *dir = opendir(folder);
    int count = 0;

    require(dir != NULL);
    while (readdir(dir))
        count++;
    (void)closedir(dir);
    return count - 2;
}

static int blob_of(const uint8_t *data, size_t size)
{
    int fd = memfd_create("blob", MFD_CLOEXEC);

    require(fd >= 0 && fs_write_all(fd, data, size) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char wanted[] =
        "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    const struct layer_unpack_limits limits = { .bytes_max = 1 << 20, .entries_max = 64 };
    struct layer_unpack_result result = { 0 };
    struct aq_error err = { 0 };
    struct confined_tree tree;
    char path[PATH_MAX];
    int blob;

    if (at < 0) {
        require(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
        at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    require(mkdirat(at, "fs", 0700) == 0);
    confined_tree_init(&tree, openat(at, "fs", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    blob = blob_of(data, size);
    require(layer_unpack(blob, NULL, wanted, &limits, &tree, NULL, NULL, &result, &err) < 0);
    require(err.text[0]);
    confined_tree_done(&tree);
    (void)close(blob);
    require(count_entries() == 1);
    require(fs_remove_tree(at, "fs", NULL) == 0);
    if (size && size < sizeof(path) && !memchr(data, 0, size)) {
        char raw[PATH_MAX];

        memcpy(raw, data, size);
        raw[size] = '\0';
        if (confined_tree_clean(raw, path, &err) == 0)
            require(path[0] != '/' && strlen(path) <= size && !strstr(path, "//"));
    }
    return 0;
}
