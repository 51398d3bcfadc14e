/* SPDX-License-Identifier: Apache-2.0 */
/* passwd.c - adds the program's user to /etc/passwd and /etc/group of its image */
#include "monitor/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"

#define ACCOUNTS_MAX (4u << 20)
#define ACCOUNT_NAME "work"

static int passwd_open_inside(int root, const char *path, int flags, mode_t mode)
{
    const struct open_how how = { .flags = (uint64_t)flags | O_CLOEXEC,
                                  .mode = flags & O_CREAT ? mode : 0,
                                  .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Field 'n' (from 0, parted by ':') of the line at 'line'; *len is 0 if there is none. */
static const char *passwd_get_field(const char *line, int n, size_t *len)
{
    for (; n > 0; n--) {
        line += strcspn(line, ":\n");
        line += *line == ':';
    }
    *len = strcspn(line, ":\n");
    return line;
}

static bool passwd_is_field(const char *line, int n, const char *value)
{
    size_t len;
    const char *field = passwd_get_field(line, n, &len);

    return len == strlen(value) && strncmp(field, value, len) == 0;
}

/* The first line whose field 'n' is 'value': the one that look-ups find. NULL = none. */
static const char *passwd_find_line(const char *text, int n, const char *value)
{
    for (const char *line = text; *line;) {
        if (passwd_is_field(line, n, value))
            return line;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
}

/* A lookup by number or by name finds the entry that is wanted. */
static bool passwd_is_right(const char *text, const char *id, int home_field, const char *home)
{
    const char *line = passwd_find_line(text, 2, id);

    return line && line == passwd_find_line(text, 0, ACCOUNT_NAME)
           && (home_field == 0 || passwd_is_field(line, home_field, home));
}

struct file {
    const char *path;
    uint32_t number;
    int home_field; /* 0 = a group has none */
    void (*write)(const struct passwd_user *user, int root, struct strbuf *out);
};

static void passwd_write_user(const struct passwd_user *user, int root, struct strbuf *out)
{
    AQ_CLEANUP(aq_closep) int bash = passwd_open_inside(root, "bin/bash", O_PATH, 0);

    strbuf_addf(out, ACCOUNT_NAME ":x:%" PRIu32 ":%" PRIu32 "::%s:%s\n", user->uid, user->gid,
                user->home, bash >= 0 ? "/bin/bash" : "/bin/sh");
}

static void passwd_write_group(const struct passwd_user *user, int root, struct strbuf *out)
{
    (void)root;
    strbuf_addf(out, ACCOUNT_NAME ":x:%" PRIu32 ":\n", user->gid);
}

static int passwd_read_file(int fd, struct strbuf *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("/proc/self/fd/%d", fd);

    return name ? fs_read(AT_FDCWD, name, ACCOUNTS_MAX, ret, err) : aq_fail_oom(err);
}

/* Put the entry before all others of the file, which may have to be made. */
static int passwd_add_entry(int root, const struct file *file, const struct passwd_user *user,
                            struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf old = STRBUF_INIT, text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *id = aq_format("%" PRIu32, file->number);
    AQ_CLEANUP(aq_closep) int fd = passwd_open_inside(root, file->path, O_RDWR | O_CREAT, 0644);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return fd < 0 && errno == EROFS
                   ? 0
                   : aq_fail(err, EINVAL, "the image's '%s' is no file", file->path);
    r = id ? passwd_read_file(fd, &old, err) : aq_fail_oom(err);
    if (r < 0 || passwd_is_right(old.data, id, file->home_field, user->home))
        return r;
    if (st.st_size == 0 && fchown(fd, user->id_base, user->id_base) < 0)
        return aq_fail_errno(err, "the image's '%s'", file->path);
    file->write(user, root, &text);
    strbuf_add(&text, old.data, old.len);
    r = strbuf_ok(&text) ? fs_write_all(fd, text.data, text.len) : -ENOMEM;
    return r < 0 ? aq_fail(err, -r, "the image's '%s': %s", file->path, strerror(-r)) : 0;
}

static int passwd_make_etc(int root, const struct passwd_user *user, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int etc = passwd_open_inside(root, "etc", O_PATH | O_DIRECTORY, 0);

    if (etc >= 0 || errno != ENOENT)
        return 0;
    return mkdirat(root, "etc", 0755) < 0
                   || fchownat(root, "etc", user->id_base, user->id_base, AT_SYMLINK_NOFOLLOW) < 0
               ? aq_fail_errno(err, "the image's '/etc'")
               : 0;
}

int passwd_add_user(const char *rootfs, const struct passwd_user *user, struct aq_error *err)
{
    const struct file files[] = { { "etc/passwd", user->uid, 5, passwd_write_user },
                                  { "etc/group", user->gid, 0, passwd_write_group } };
    AQ_CLEANUP(aq_closep) int root = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = root < 0 ? aq_fail_errno(err, "open '%s'", rootfs) : passwd_make_etc(root, user, err);

    for (size_t i = 0; r == 0 && i < AQ_COUNT(files); i++)
        if (files[i].number != 0) /* root stays root */
            r = passwd_add_entry(root, &files[i], user, err);
    return r;
}
