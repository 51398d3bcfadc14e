/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - what every daemon needs of its machine */
#include "check/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"

#define WRITTEN_BYTES 65536
#define FREE_FEW (UINT64_C(1) << 30)
#define INODES_FEW 10000
#define FILES_FEW 16384
#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)
#define DAYS_FEW 30

/* ---- directories ---- */

static const char *machine_name_fs(const char *path)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {
        { EXT4_SUPER_MAGIC, "ext4" },
        { XFS_SUPER_MAGIC, "xfs" },
        { BTRFS_SUPER_MAGIC, "btrfs" },
        { TMPFS_MAGIC, "tmpfs" },
        { OVERLAYFS_SUPER_MAGIC, "overlayfs" },
        { NFS_SUPER_MAGIC, "nfs" },
        { 0x2fc12fc1, "zfs" },
        { 0x65735546, "fuse" },
    };
    struct statfs fs;

    for (size_t i = 0; statfs(path, &fs) == 0 && i < AQ_COUNT(known); i++)
        if ((unsigned long)fs.f_type == known[i].magic)
            return known[i].name;
    return "another file system";
}

void machine_judge_space(const char *path, const struct statvfs *fs, const char *fs_name,
                         struct finding *ret)
{
    uint64_t free_bytes = (uint64_t)fs->f_bavail * fs->f_frsize;
    bool has_inodes = fs->f_files == 0 || fs->f_favail >= INODES_FEW;

    if (free_bytes >= FREE_FEW && has_inodes) {
        finding_say(ret, CHECK_OK, "%s can be written, %.1f GiB are free (%s)", path,
                    (double)free_bytes / (1 << 30), fs_name);
        return;
    }
    if (free_bytes < FREE_FEW)
        finding_say(ret, CHECK_WARNING, "only %.1f MiB are free at %s (%s)",
                    (double)free_bytes / (1 << 20), path, fs_name);
    else
        finding_say(ret, CHECK_WARNING, "only %llu files can still be made at %s (%s)",
                    (unsigned long long)fs->f_favail, path, fs_name);
    finding_mean(ret, "logs, images and files of sessions soon find no room");
    finding_mend(ret, "du -xh --max-depth=2 %s", path);
}

/* A file as large as what a daemon writes at once, on the disk and away again. */
static int machine_write_file(const char *folder)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/.check-XXXXXX", folder);
    AQ_CLEANUP(aq_freep) char *bytes = aq_alloc(WRITTEN_BYTES);
    AQ_CLEANUP(aq_closep) int fd = mkostemp(path, O_CLOEXEC);
    int r;

    if (fd < 0)
        return -errno;
    r = fs_write_all(fd, bytes, WRITTEN_BYTES);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    (void)unlink(path);
    return r;
}

static void machine_say_unwritable(const char *path, const char *owner, int code,
                                   struct finding *ret)
{
    finding_say(ret, CHECK_MISSING, "%s cannot be written: %s", path, strerror(code));
    finding_mean(ret,
                 fs_is_out_of_room(code) ? "%s serves stored data, but creates nothing"
                                         : "%s does not start",
                 owner);
    if (fs_is_full(code))
        finding_mend(ret, "df -h %s", path);
    else if (code == EROFS)
        finding_mend(ret, "mount -o remount,rw PATH, or another folder: %s --state FOLDER", owner);
    else if (geteuid() != 0)
        finding_mend(ret, "sudo %s, or a folder of your own: %s --state FOLDER", owner, owner);
    else
        finding_mend(ret, "ls -ld %s, or another folder: %s --state FOLDER", path, owner);
}

void machine_check_folder(const char *path, const char *owner, struct finding *ret)
{
    AQ_CLEANUP(aq_freep) char *kept = fs_find_existing(path);
    struct aq_error err = { 0 };
    struct statvfs fs;
    struct stat st;
    int r = fs_mkdirs(path, 0700, &err);

    if (r == 0)
        r = machine_write_file(path);
    if (r < 0)
        machine_say_unwritable(path, owner, -r, ret);
    else if (stat(path, &st) == 0 && (st.st_mode & 022)) {
        finding_say(ret, CHECK_WARNING, "others may write to %s", path);
        finding_mean(ret, "who can replace its keys and orders controls all sessions here");
        finding_mend(ret, "chmod go-w %s", path);
    } else if (statvfs(path, &fs) == 0) {
        machine_judge_space(path, &fs, machine_name_fs(path), ret);
    }
    if (kept)
        fs_remove_folders(path, kept);
}

/* ---- the clock ---- */

void machine_judge_clock(const struct timex *clock, int state, struct finding *ret)
{
    if (state >= 0 && state != TIME_ERROR && !(clock->status & STA_UNSYNC)) {
        finding_say(ret, CHECK_OK, "the clock is synchronised (within %ld ms)",
                    clock->maxerror / 1000);
        return;
    }
    finding_say(ret, CHECK_WARNING, "the clock is not synchronised (adjtimex: STA_UNSYNC)");
    finding_mean(ret, "requests and certificates carry times: where clocks differ by minutes, "
                      "they are refused");
    finding_mend(ret, "apt install chrony");
}

void machine_check_clock(struct finding *ret)
{
    struct timex clock = { .modes = 0 };
    int state = adjtimex(&clock);

    machine_judge_clock(&clock, state, ret);
}

void machine_judge_certificate(const char *path, int64_t end_usec, int64_t now_usec,
                               const char *remedy, struct finding *ret)
{
    int64_t days = (end_usec - now_usec) / DAY_USEC;
    char date[CLOCK_ISO_MAX];

    (void)clock_format_iso(end_usec, date);
    if (now_usec >= end_usec)
        finding_say(ret, CHECK_MISSING, "the certificate %s expired on %.10s", path, date);
    else if (days < DAYS_FEW)
        finding_say(ret, CHECK_WARNING, "the certificate %s expires in %d days", path, (int)days);
    else
        finding_say(ret, CHECK_OK, "the certificate %s is valid until %.10s", path, date);
    if (ret->level == CHECK_OK)
        return;
    finding_mean(ret, "from then on nobody talks to this program");
    finding_mend(ret, "%s", remedy);
}

/* ---- limits ---- */

void machine_judge_files(rlim_t most, struct finding *ret)
{
    if (most == RLIM_INFINITY || most >= FILES_FEW) {
        finding_say(ret, CHECK_OK, "%llu files may be open",
                    most == RLIM_INFINITY ? ~0ULL >> 1 : (unsigned long long)most);
        return;
    }
    finding_say(ret, CHECK_WARNING, "only %llu files may be open", (unsigned long long)most);
    finding_mean(ret, "with many sessions or clients at once connections are refused");
    finding_mend(ret, "ulimit -Hn 1048576 as root before the start, or LimitNOFILE=1048576 in its "
                      "unit");
}

void machine_check_files(struct finding *ret)
{
    struct rlimit limit = { .rlim_max = RLIM_INFINITY };

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    machine_judge_files(limit.rlim_max, ret);
}

/* ---- containers around us ---- */

static bool machine_exists(const char *root, const char *path)
{
    AQ_CLEANUP(aq_freep) char *whole = aq_format("%s%s", root, path);

    return access(whole, F_OK) == 0;
}

/* container=NAME among the variables of process 1, as systemd-nspawn, LXC and others set it. */
static bool machine_is_marked(const char *root)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/proc/1/environ", root);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (fs_read(AT_FDCWD, path, 1 << 17, &text, NULL) < 0)
        return false;
    for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1)
        if (strncmp(text.data + at, "container=", 10) == 0)
            return true;
    return false;
}

const char *machine_find_container(const char *root)
{
    static const char *const files[] = { "/.dockerenv", "/run/.containerenv",
                                         "/run/systemd/container" };

    for (size_t i = 0; i < AQ_COUNT(files); i++)
        if (machine_exists(root, files[i]))
            return files[i];
    return machine_is_marked(root) ? "the variable 'container' of process 1" : NULL;
}
