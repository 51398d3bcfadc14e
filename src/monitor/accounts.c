#include "monitor/accounts.h"

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

static int open_inside(int root, const char *path, int flags, mode_t mode)
{
    const struct open_how how = { .flags = (uint64_t)flags | O_CLOEXEC,
                                  .mode = flags & O_CREAT ? mode : 0,
                                  .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Is there a line whose field 'n' (from 0, parted by ':') is 'value'? */
static bool has_field(const char *text, int n, const char *value)
{
    size_t len = strlen(value);

    for (const char *line = text; *line;) {
        size_t rest = strcspn(line, "\n");
        const char *end = line + rest, *field = line;

        for (int i = 0; i < n && field < end; i++)
            field += strcspn(field, ":\n") + 1;
        if (field < end && strncmp(field, value, len) == 0
            && (field[len] == ':' || field[len] == '\n' || field[len] == '\0'))
            return true;
        line = end + (*end == '\n');
    }
    return false;
}

static const char *free_name(const char *text)
{
    return has_field(text, 0, "work") ? "aliquot" : "work";
}

/* Append to the file, which may have to be made; 'number' is its third field. */
static int add_entry(int root, const char *path, const struct account *account, uint32_t number,
                     void (*write)(const struct account *account, const char *name,
                                   struct strbuf *out),
                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, entry = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *id = aq_format("%" PRIu32, number);
    AQ_CLEANUP(aq_closep) int fd = open_inside(root, path, O_RDWR | O_CREAT | O_APPEND, 0644);
    AQ_CLEANUP(aq_freep) char *name = aq_format("/proc/self/fd/%d", fd);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return fd < 0 && errno == EROFS ? 0 : aq_fail(err, EINVAL, "the image's '%s' is no file", path);
    r = id && name ? fs_read(AT_FDCWD, name, ACCOUNTS_MAX, &text, err) : -ENOMEM;
    if (r < 0 || has_field(text.data, 2, id))
        return r;
    if (st.st_size == 0 && fchown(fd, account->id_base, account->id_base) < 0)
        return aq_fail_errno(err, "the image's '%s'", path);
    if (text.len && text.data[text.len - 1] != '\n')
        strbuf_addc(&entry, '\n');
    write(account, free_name(text.data), &entry);
    r = strbuf_ok(&entry) ? fs_write_all(fd, entry.data, entry.len) : -ENOMEM;
    return r < 0 ? aq_fail(err, -r, "the image's '%s': %s", path, strerror(-r)) : 0;
}

static void write_user(const struct account *account, const char *name, struct strbuf *out)
{
    strbuf_addf(out, "%s:x:%" PRIu32 ":%" PRIu32 "::%s:/bin/sh\n", name, account->uid, account->gid,
                account->home);
}

static void write_group(const struct account *account, const char *name, struct strbuf *out)
{
    strbuf_addf(out, "%s:x:%" PRIu32 ":\n", name, account->gid);
}

int accounts_add(const char *rootfs, const struct account *account, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int root = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int etc = -1;
    int r;

    if (root < 0)
        return aq_fail_errno(err, "open '%s'", rootfs);
    etc = open_inside(root, "etc", O_PATH | O_DIRECTORY, 0);
    if (etc < 0 && errno == ENOENT
        && (mkdirat(root, "etc", 0755) < 0
            || fchownat(root, "etc", account->id_base, account->id_base, AT_SYMLINK_NOFOLLOW) < 0))
        return aq_fail_errno(err, "the image's '/etc'");
    r = add_entry(root, "etc/passwd", account, account->uid, write_user, err);
    return r < 0 ? r : add_entry(root, "etc/group", account, account->gid, write_group, err);
}
