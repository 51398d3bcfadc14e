/* SPDX-License-Identifier: Apache-2.0 */
/* tree_reader.c - files and folders as a tar archive, made as it is read */
#include "transfer/tree_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transfer/beneath.h"

#define DEPTH_MAX 128

struct tree_reader_folder {
    DIR *dir;
    size_t name_len; /* of its name in the archive */
};

struct tree_reader {
    int root;
    const char *const *paths;
    size_t count, at;
    const char *omitted; /* NULL = nothing */
    bool is_list;        /* as tree_reader_list() has it */
    struct tar_limits limits;
    struct tar_count counted;
    struct strbuf out; /* to be read next */
    size_t out_at;
    struct strbuf name; /* in the archive, of what is at hand */
    struct tree_reader_folder folders[DEPTH_MAX];
    size_t depth;
    int file;
    uint64_t left;
    size_t padding;
    bool is_short, is_ended;
};

int tree_reader_new(int root, const char *const *paths, size_t count,
                    const struct tar_limits *limits, struct tree_reader **ret, struct aq_error *err)
{
    struct tree_reader *t = calloc(1, sizeof(*t));

    if (!t)
        return aq_fail_oom(err);
    t->root = root;
    t->paths = paths;
    t->count = count;
    t->limits = *limits;
    t->file = -1;
    strbuf_init(&t->out);
    strbuf_init(&t->name);
    *ret = t;
    return 0;
}

void tree_reader_omit(struct tree_reader *t, const char *name)
{
    t->omitted = name;
}

void tree_reader_list(struct tree_reader *t)
{
    t->is_list = true;
}

void tree_reader_free(struct tree_reader *t)
{
    if (!t)
        return;
    while (t->depth)
        (void)closedir(t->folders[--t->depth].dir);
    aq_closep(&t->file);
    strbuf_done(&t->out);
    strbuf_done(&t->name);
    free(t);
}

static void tree_reader_note(struct tree_reader *t, const char *word, const char *why)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("%s: %s: %s", word, t->name.data, why);

    if (text)
        tar_write_note(&t->out, text);
    else
        t->out.failed = true;
}

/* ---- entries ---- */

static int tree_reader_add_head(struct tree_reader *t, enum tar_type type, const struct stat *st,
                                const char *target, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = type == TAR_FOLDER ? aq_format("%s/", t->name.data) : NULL;
    const struct tar_entry e = {
        .type = type,
        .name = folder ? folder : t->name.data,
        .target = target,
        .mode = st->st_mode & 0777,
        .size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
        .mtime = st->st_mtim.tv_sec,
        .mtime_nsec = st->st_mtim.tv_nsec,
    };
    int r = tar_count_entry(&t->counted, &t->limits, e.size, err);

    if (r < 0 || (type == TAR_FOLDER && !folder))
        return r < 0 ? r : aq_fail_oom(err);
    tar_write_head(&t->out, &e);
    return 0;
}

static int tree_reader_add_link(struct tree_reader *t, int parent, const char *name,
                                const struct stat *st, struct aq_error *err)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(parent, name, target, sizeof(target) - 1);

    if (len < 0) {
        tree_reader_note(t, "failed", strerror(errno));
        return 0;
    }
    target[len] = '\0';
    return tree_reader_add_head(t, TAR_LINK, st, target, err);
}

/* Of a folder or a file that was opened; takes 'fd'. */
static int tree_reader_add_opened(struct tree_reader *t, int fd, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int opened = fd;
    struct stat st;
    int r;

    if (fstat(opened, &st) < 0)
        return aq_fail_errno(err, "look at a file");
    if (S_ISREG(st.st_mode)) {
        r = tree_reader_add_head(t, TAR_FILE, &st, NULL, err);
        t->file = AQ_TAKE_FD(opened);
        t->left = (uint64_t)st.st_size;
        t->padding = tar_padding(t->left);
        return r;
    }
    if (!S_ISDIR(st.st_mode)) {
        tree_reader_note(t, "skipped", "it is no file, folder or link");
        return 0;
    }
    r = tree_reader_add_head(t, TAR_FOLDER, &st, NULL, err);
    if (r < 0)
        return r;
    if (t->depth == DEPTH_MAX) {
        tree_reader_note(t, "failed", "folders are nested too deeply");
        return 0;
    }
    t->folders[t->depth].dir = fdopendir(opened);
    if (!t->folders[t->depth].dir)
        return aq_fail_errno(err, "read a folder");
    opened = -1;
    t->folders[t->depth++].name_len = t->name.len;
    return 0;
}

/* One of a folder's names. What is special is not opened: that may wait, or do something. */
static int tree_reader_add_child(struct tree_reader *t, int parent, const char *name,
                                 struct aq_error *err)
{
    struct stat st;
    int fd;

    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            tree_reader_note(t, "failed", strerror(errno));
        return 0;
    }
    if (S_ISLNK(st.st_mode))
        return tree_reader_add_link(t, parent, name, &st, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        tree_reader_note(t, "skipped", "it is no file, folder or link");
        return 0;
    }
    fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        tree_reader_note(t, "failed", strerror(errno));
        return 0;
    }
    return tree_reader_add_opened(t, fd, err);
}

static int tree_reader_next_child(struct tree_reader *t, struct aq_error *err)
{
    struct tree_reader_folder *f = &t->folders[t->depth - 1];
    struct dirent *entry;

    strbuf_truncate(&t->name, f->name_len);
    errno = 0;
    entry = readdir(f->dir);
    if (!entry) {
        if (errno)
            tree_reader_note(t, "failed", strerror(errno));
        (void)closedir(f->dir);
        t->depth--;
        return 0;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
        || (t->omitted && t->depth == 1 && strcmp(entry->d_name, t->omitted) == 0))
        return 0;
    strbuf_addf(&t->name, "/%s", entry->d_name);
    if (!strbuf_ok(&t->name))
        return aq_fail_oom(err);
    if (t->name.len < PATH_MAX - 1)
        return tree_reader_add_child(t, dirfd(f->dir), entry->d_name, err);
    tree_reader_note(t, "failed", "the path is too long");
    return 0;
}

/* 0 with *ret_fd -1: the archive has a note instead. */
static int tree_reader_open_path(struct tree_reader *t, const char *path, int *ret_fd,
                                 struct aq_error *err)
{
    int fd = beneath_open(t->root, path, O_PATH, false);
    bool is_plain = true;
    struct stat st;

    if (fd >= 0) {
        is_plain = fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
        aq_closep(&fd);
        fd = is_plain ? beneath_open(t->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false) : -1;
    }
    *ret_fd = fd;
    if (fd >= 0)
        return 0;
    *ret_fd = -1;
    if (t->is_list) {
        tree_reader_note(t, "failed", is_plain ? strerror(-fd) : "it is neither file nor folder");
        return 0;
    }
    return is_plain ? beneath_fail(err, -fd, *path ? path : ".")
                    : aq_fail_kind(err, EINVAL, "not-a-file", "'%.200s' is neither file nor folder",
                                   path);
}

static int tree_reader_next_path(struct tree_reader *t, struct aq_error *err)
{
    const char *path = t->paths[t->at++], *slash = t->is_list ? NULL : strrchr(path, '/');
    int fd, r;

    strbuf_clear(&t->name);
    strbuf_adds(&t->name, !*path ? "." : slash ? slash + 1 : path);
    if (!strbuf_ok(&t->name))
        return aq_fail_oom(err);
    r = tree_reader_open_path(t, path, &fd, err);
    return r < 0 || fd < 0 ? r : tree_reader_add_opened(t, fd, err);
}

/* ---- bytes ---- */

/* Some of the open file. One that has become shorter is filled up. */
static size_t tree_reader_take_file(struct tree_reader *t, char *buf, size_t cap)
{
    size_t part = (size_t)AQ_MIN((uint64_t)cap, t->left);
    ssize_t got = 0;

    if (!t->is_short) {
        do
            got = read(t->file, buf, part);
        while (got < 0 && errno == EINTR);
        t->is_short = got <= 0;
    }
    if (t->is_short) {
        memset(buf, 0, part);
        got = (ssize_t)part;
    }
    t->left -= (uint64_t)got;
    return (size_t)got;
}

static void tree_reader_end_file(struct tree_reader *t)
{
    static const char zeros[TAR_BLOCK];

    aq_closep(&t->file);
    t->file = -1;
    strbuf_add(&t->out, zeros, t->padding);
    if (t->is_short)
        tree_reader_note(t, "failed", "it was changed, or could not be read, meanwhile");
    t->is_short = false;
}

/* Put something into 'out', or begin a file's bytes. */
static int tree_reader_step(struct tree_reader *t, struct aq_error *err)
{
    if (t->file >= 0) {
        tree_reader_end_file(t);
        return 0;
    }
    if (t->depth)
        return tree_reader_next_child(t, err);
    if (t->at < t->count)
        return tree_reader_next_path(t, err);
    tar_write_end(&t->out);
    t->is_ended = true;
    return 0;
}

ssize_t tree_reader_read(struct tree_reader *t, char *buf, size_t cap, struct aq_error *err)
{
    int r = 0;

    for (;;) {
        size_t part = AQ_MIN(cap, t->out.len - t->out_at);

        if (!strbuf_ok(&t->out))
            return aq_fail_oom(err);
        if (part) {
            memcpy(buf, t->out.data + t->out_at, part);
            t->out_at += part;
            return (ssize_t)part;
        }
        strbuf_clear(&t->out);
        t->out_at = 0;
        if (t->file >= 0 && t->left)
            return (ssize_t)tree_reader_take_file(t, buf, cap);
        if (t->is_ended)
            return 0;
        r = tree_reader_step(t, err);
        if (r < 0)
            return r;
    }
}
