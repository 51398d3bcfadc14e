/* SPDX-License-Identifier: Apache-2.0 */
/* scratch_image.c - a size-limited scratch space: a file system in a file, on a loop device */
#include "monitor/scratch_image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/strbuf.h"

#define LOOP_TRIES 1000     /* others take free devices too */
#define UNMOUNT_TRIES 10000 /* a millisecond each */

/* Offsets in ext4's superblock. */
#define SUPER_LOG_BLOCK 24 /* 0 = 1024 bytes, 1 = 2048, 2 = 4096 */
#define SUPER_MAGIC 56     /* 0xef53, little-endian */

static int scratch_image_copy_range(int from, int to, off_t start, off_t end)
{
    if (lseek(to, start, SEEK_SET) < 0)
        return -errno;
    while (start < end) {
        ssize_t copied = sendfile(to, from, &start, (size_t)(end - start));

        if (copied < 0 && errno == EINTR)
            continue;
        if (copied <= 0)
            return copied < 0 ? -errno : -EIO;
    }
    return 0;
}

/* Only what is not a hole. */
static int scratch_image_copy_data(int from, int to, off_t size)
{
    off_t start = 0, end;
    int r = 0;

    while (r == 0 && start < size) {
        start = lseek(from, start, SEEK_DATA);
        if (start < 0)
            return errno == ENXIO ? 0 : -errno; /* a hole up to the end */
        end = lseek(from, start, SEEK_HOLE);
        r = end < 0 ? -errno : scratch_image_copy_range(from, to, start, end);
        start = end;
    }
    return r;
}

/* The block size of the ext4 file system in 'image'; 0 = the default of loop devices. */
static uint32_t scratch_image_find_block_size(int image)
{
    unsigned char super[SUPER_MAGIC + 2];

    if (pread(image, super, sizeof(super), 1024) != (ssize_t)sizeof(super)
        || super[SUPER_MAGIC] != 0x53 || super[SUPER_MAGIC + 1] != 0xef
        || super[SUPER_LOG_BLOCK] > 2)
        return 0;
    return 1024u << super[SUPER_LOG_BLOCK];
}

/* A loop device with the file behind it, gone when the last user closes it. Its blocks are those of the
 * file system in 'image' (decision 544).
 */
static int scratch_image_attach(int file, int image, char device[32], struct aq_error *err)
{
    const struct loop_config config = { .fd = (uint32_t)file,
                                        .block_size = scratch_image_find_block_size(image),
                                        .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
    AQ_CLEANUP(aq_closep) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    if (control < 0)
        return aq_fail_errno(err, "open '/dev/loop-control'");
    for (int i = 0; i < LOOP_TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE), loop;

        if (number < 0)
            return aq_fail_errno(err, "find a free loop device");
        (void)snprintf(device, 32, "/dev/loop%d", number);
        loop = open(device, O_RDWR | O_CLOEXEC);
        if (loop >= 0 && ioctl(loop, LOOP_CONFIGURE, &config) == 0)
            return loop;
        if (loop >= 0 && errno != EBUSY)
            (void)aq_fail_errno(err, "attach to '%s'", device);
        aq_closep(&loop);
        (void)usleep(1000);
    }
    return aq_fail(err, EBUSY, "no loop device is free");
}

/* The lock is the open file's, so the loop device holds it as long as it holds
 * the file: until then a former attempt has this file system mounted.
 */
static int scratch_image_await_former(int file, const char *path, struct aq_error *err)
{
    for (int i = 0; flock(file, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK || i == UNMOUNT_TRIES)
            return aq_fail_errno(err, "'%s' is still mounted", path);
        (void)usleep(1000);
    }
    return 0;
}

/* What is in it dies with the kernel, so it need not reach the disk. Nor does a thread
 * of ext4's write zeros to all inode tables and read all bitmaps ahead, as it does after
 * each mount unless it is told not to (since Linux 5.13).
 */
static int scratch_image_mount_image(const char *device, const char *directory)
{
    static const char *const options[] = {
        "nobarrier,discard,noinit_itable,no_prefetch_block_bitmaps", "nobarrier,discard"
    };
    int r = -1;

    for (size_t i = 0; i < AQ_COUNT(options) && r < 0; i++) {
        r = mount(device, directory, "ext4", MS_NODEV | MS_NOSUID | MS_NOATIME, options[i]);
        if (r < 0 && errno != EINVAL)
            break;
    }
    return r;
}

/* ---- an image that is there ---- */

static int scratch_image_mount_again(const char *path, const char *directory, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int file = open(path, O_RDWR | O_CLOEXEC), loop = -1;
    char device[32] = "";
    int r = file < 0 ? aq_fail_errno(err, "open '%s'", path)
                     : scratch_image_await_former(file, path, err);

    if (r == 0)
        r = loop = scratch_image_attach(file, file, device, err);
    if (r < 0)
        return r;
    return scratch_image_mount_image(device, directory) < 0 ? aq_fail_errno(err, "mount '%s'", path)
                                                            : 0;
}

/* ---- a new one ---- */

/* Nothing but its size. One that was emptied before is not emptied again: ext4 would
 * write it out at its closing.
 */
static int scratch_image_make_empty(int file, off_t size)
{
    struct stat st;

    if (fstat(file, &st) < 0 || (st.st_size && ftruncate(file, 0) < 0) || ftruncate(file, size) < 0)
        return -errno;
    return 0;
}

/* By the device: what is in the file when a device gets it is written to the disk first,
 * what comes later need never be.
 */
static int scratch_image_fill_and_mount(int file, int original, off_t size, const char *directory,
                                        struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int loop = -1;
    char device[32] = "";
    int r;

    loop = scratch_image_attach(file, original, device, err);
    if (loop < 0)
        return loop;
    r = scratch_image_copy_data(original, loop, size);
    if (r < 0)
        return aq_fail(err, -r, "fill '%s': %s", device, strerror(-r));
    AQ_FAULT("monitor.scratch.copied");
    return scratch_image_mount_image(device, directory) < 0
               ? aq_fail_errno(err, "mount '%s'", device)
               : 0;
}

static int scratch_image_mount_new(const char *original, const char *path, const char *directory,
                                   struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *fresh = aq_format("%s.new", path);
    AQ_CLEANUP(aq_closep) int from = open(original, O_RDONLY | O_CLOEXEC), file = -1;
    struct stat st;
    int r;

    if (!fresh)
        return aq_fail_oom(err);
    if (from < 0 || fstat(from, &st) < 0)
        return aq_fail_errno(err, "open '%s'", original);
    file = open(fresh, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    r = file < 0 ? aq_fail_errno(err, "make '%s'", fresh)
                 : scratch_image_await_former(file, fresh, err);
    if (r < 0)
        return r;
    r = scratch_image_make_empty(file, st.st_size);
    r = r < 0 ? aq_fail(err, -r, "make '%s': %s", fresh, strerror(-r))
              : scratch_image_fill_and_mount(file, from, st.st_size, directory, err);
    AQ_FAULT("monitor.scratch.unnamed");
    if (r == 0 && rename(fresh, path) < 0)
        r = aq_fail_errno(err, "make '%s'", path);
    if (r < 0)
        (void)unlink(fresh);
    return r;
}

int scratch_image_mount(const char *original, const char *path, const char *directory,
                        struct aq_error *err)
{
    return access(path, F_OK) == 0 ? scratch_image_mount_again(path, directory, err)
                                   : scratch_image_mount_new(original, path, directory, err);
}
