/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - files into and out of the container, by the runner itself in place of a program */
#include "runner/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/jsonw.h"
#include "runner/protocol.h"
#include "transfer/beneath.h"
#include "transfer/tree_reader.h"
#include "transfer/tree_writer.h"

#define PIECE 65536

struct files {
    int root;
    struct tar_limits limits;
    char **paths; /* below the work folder, clean; NULL-terminated */
    size_t count;
};

static volatile sig_atomic_t files_is_cut;

static void files_on_signal(int signum)
{
    (void)signum;
    files_is_cut = 1;
}

/* Without SA_RESTART: who waits for input hears of it. */
static void files_catch_signals(void)
{
    const struct sigaction cut = { .sa_handler = files_on_signal };

    (void)sigaction(SIGHUP, &cut, NULL);
    (void)sigaction(SIGTERM, &cut, NULL);
    (void)sigaction(SIGINT, &cut, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

static int files_fail_output(struct aq_error *err, int code)
{
    return aq_fail_kind(err, code, "transfer-cut", "the reader has gone: %s", strerror(code));
}

/* ---- out ---- */

static int files_get(const struct files *f, struct aq_error *err)
{
    AQ_CLEANUP(tree_reader_freep) struct tree_reader *reader = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf note = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    bool has_begun = false;
    static char buf[PIECE];
    ssize_t got;
    int r = tree_reader_new(f->root, (const char *const *)f->paths, f->count, &f->limits, &reader,
                            err);

    if (r < 0)
        return r;
    while ((got = tree_reader_read(reader, buf, sizeof(buf), err)) > 0) {
        r = fs_write_all(STDOUT_FILENO, buf, (size_t)got);
        if (r < 0)
            return files_fail_output(err, -r);
        has_begun = true;
    }
    if (got < 0 && has_begun && (text = aq_format("error: %s", err->text))) {
        tar_write_note(&note, text);
        (void)fs_write_all(STDOUT_FILENO, note.data, note.len);
    }
    return (int)got;
}

static int files_open(const struct files *f, const char *path, struct stat *ret_st,
                      struct aq_error *err)
{
    int fd = beneath_open(f->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false);

    if (fd < 0)
        return beneath_fail(err, -fd, *path ? path : FILES_WORK);
    if (fstat(fd, ret_st) == 0)
        return fd;
    aq_closep(&fd);
    return beneath_fail(err, errno, path);
}

static int files_cat(const struct files *f, struct aq_error *err)
{
    struct tar_count count = { 0 };
    static char buf[PIECE];
    struct stat st;
    AQ_CLEANUP(aq_closep) int fd = files_open(f, f->paths[0], &st, err);
    ssize_t got;
    int r;

    if (fd < 0)
        return fd;
    if (!S_ISREG(st.st_mode))
        return aq_fail_kind(err, EINVAL, S_ISDIR(st.st_mode) ? "is-a-folder" : "not-a-file",
                            "'%.200s' is no file", f->paths[0]);
    r = tar_count_entry(&count, &f->limits, (uint64_t)st.st_size, err);
    while (r == 0 && (got = read(fd, buf, sizeof(buf))) != 0) {
        if (got < 0 && errno == EINTR && !files_is_cut)
            continue;
        if (got < 0)
            return beneath_fail(err, errno, f->paths[0]);
        r = fs_write_all(STDOUT_FILENO, buf, (size_t)got);
        if (r < 0)
            return files_fail_output(err, -r);
    }
    return r;
}

static int files_check(const struct files *f, struct aq_error *err)
{
    for (size_t i = 0; i < f->count; i++) {
        struct stat st;
        int fd = files_open(f, f->paths[i], &st, err);

        if (fd < 0)
            return fd;
        aq_closep(&fd);
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
            return aq_fail_kind(err, EINVAL, "not-a-file", "'%.200s' is neither file nor folder",
                                f->paths[i]);
    }
    return 0;
}

/* "-rw-r--r--" as ls(1) has it. */
static void files_format_mode(mode_t mode, char text[11])
{
    static const char letters[] = "rwxrwxrwx";

    text[0] = S_ISDIR(mode)    ? 'd'
              : S_ISLNK(mode)  ? 'l'
              : S_ISFIFO(mode) ? 'p'
              : S_ISSOCK(mode) ? 's'
              : S_ISCHR(mode)  ? 'c'
              : S_ISBLK(mode)  ? 'b'
                               : '-';
    for (int i = 0; i < 9; i++)
        text[1 + i] = mode & (0400u >> i) ? letters[i] : '-';
    if (mode & S_ISUID)
        text[3] = mode & S_IXUSR ? 's' : 'S';
    if (mode & S_ISGID)
        text[6] = mode & S_IXGRP ? 's' : 'S';
    if (mode & S_ISVTX)
        text[9] = mode & S_IXOTH ? 't' : 'T';
    text[10] = '\0';
}

static void files_write_row(struct jsonw *w, const char *name, const struct stat *st)
{
    char mode[11];

    files_format_mode(st->st_mode, mode);
    jsonw_object_begin(w);
    jsonw_member_str(w, "mode", mode);
    jsonw_member_int(w, "size", st->st_size);
    jsonw_member_int(w, "ctime", st->st_ctim.tv_sec);
    jsonw_member_int(w, "mtime", st->st_mtim.tv_sec);
    jsonw_member_int(w, "atime", st->st_atim.tv_sec);
    jsonw_member_str(w, "filename", name);
    jsonw_object_end(w);
}

static int files_list_folder(DIR *dir, const struct files *f, struct strbuf *out,
                             struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);
    struct tar_count count = { 0 };
    struct dirent *entry;
    struct stat st;
    int r = 0;

    jsonw_array_begin(&w);
    while (r == 0 && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
            || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        r = tar_count_entry(&count, &f->limits, 0, err);
        files_write_row(&w, entry->d_name, &st);
        if (r == 0 && f->limits.bytes_max && out->len > f->limits.bytes_max)
            r = aq_fail_kind(err, EFBIG, "transfer-too-large",
                             "the folder has more names than one list can have");
    }
    jsonw_array_end(&w);
    return r;
}

static int files_list(const struct files *f, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int fd = beneath_open(f->root, f->paths[0], O_RDONLY | O_DIRECTORY, false), r;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd < 0)
        return beneath_fail(err, -fd, f->paths[0]);
    if (!dir) {
        aq_closep(&fd);
        return aq_fail_errno(err, "read a folder");
    }
    r = files_list_folder(dir, f, &out, err);
    (void)closedir(dir);
    if (r == 0 && !strbuf_ok(&out))
        r = aq_fail_oom(err);
    if (r < 0)
        return r;
    r = fs_write_all(STDOUT_FILENO, out.data, out.len);
    return r < 0 ? files_fail_output(err, -r) : 0;
}

/* ---- in ---- */

/* Bytes, 0 = the input has ended, -ECONNRESET = it was cut off. */
static ssize_t files_read_input(char buf[PIECE], struct aq_error *err)
{
    ssize_t got;

    do
        got = read(STDIN_FILENO, buf, PIECE);
    while (got < 0 && errno == EINTR && !files_is_cut);
    if (got < 0 || files_is_cut)
        return aq_fail_kind(err, ECONNRESET, "transfer-cut", "the transfer was cut off");
    return got;
}

static int files_put(const struct files *f, const char *destination, struct aq_error *err)
{
    static const struct tree_writer_options options = { .is_wary = false };
    AQ_CLEANUP(tree_writer_freep) struct tree_writer *writer = NULL;
    AQ_CLEANUP(tar_reader_freep) struct tar_reader *reader = NULL;
    static char buf[PIECE];
    ssize_t got = 0;
    int r = tree_writer_new(f->root, destination, &options, &writer, err);

    if (r == 0)
        r = tar_reader_new(&f->limits, &tree_writer_ops, writer, &reader, err);
    while (r == 0 && (got = files_read_input(buf, err)) > 0)
        r = tar_reader_feed(reader, buf, (size_t)got, err);
    if (r == 0 && got < 0)
        r = (int)got;
    return r < 0 ? r : tar_reader_finish(reader, err);
}

static int files_write(const struct files *f, const char *destination, struct aq_error *err)
{
    static const struct tree_writer_options options = { .is_wary = false };
    AQ_CLEANUP(tree_writer_freep) struct tree_writer *writer = NULL;
    struct tar_limits limits = f->limits;
    struct tar_count count = { 0 };
    static char buf[PIECE];
    ssize_t got = 0;
    int r = tree_writer_new(f->root, destination, &options, &writer, err);

    limits.entries_max = 0; /* pieces are counted, of one file */
    if (r == 0)
        r = tree_writer_begin_file(writer, err);
    while (r == 0 && (got = files_read_input(buf, err)) > 0) {
        r = tar_count_entry(&count, &limits, (uint64_t)got, err);
        if (r == 0)
            r = tree_writer_ops.on_bytes(writer, buf, (size_t)got, err);
    }
    if (r == 0 && got < 0)
        r = (int)got;
    return r < 0 ? r : tree_writer_ops.on_entry_end(writer, err);
}

/* ---- which ---- */

/* What of a path is below the work folder. */
static int files_strip(const char *path, const char **ret, struct aq_error *err)
{
    size_t len = sizeof(FILES_WORK) - 1;

    if (strncmp(path, FILES_WORK, len) == 0 && (!path[len] || path[len] == '/')) {
        path += len;
        path += strspn(path, "/");
    }
    *ret = path;
    return *path == '/' ? aq_fail_kind(err, EINVAL, "path-leads-out",
                                       "'%.200s' is not below " FILES_WORK, path)
                        : 0;
}

static int files_clean_paths(struct files *f, struct aq_error *err)
{
    for (size_t i = 0; i < f->count; i++) {
        char *clean = malloc(PATH_MAX);
        const char *path = NULL;
        int r = clean ? files_strip(f->paths[i], &path, err) : aq_fail_oom(err);

        if (r == 0)
            r = beneath_clean(path, clean, err);
        if (r < 0) {
            free(clean);
            return r;
        }
        f->paths[i] = clean; /* as long as the process */
    }
    return 0;
}

static int files_do(const char *what, struct files *f, struct aq_error *err)
{
    const char *destination = NULL;
    int r = files_strip(f->paths[0], &destination, err);

    if (r == 0 && strcmp(what, "put") == 0)
        return files_put(f, destination, err);
    if (r == 0 && strcmp(what, "write") == 0)
        return files_write(f, destination, err);
    if (r == 0)
        r = files_clean_paths(f, err);
    if (r < 0)
        return r;
    if (strcmp(what, "get") == 0)
        return files_get(f, err);
    if (strcmp(what, "cat") == 0)
        return files_cat(f, err);
    if (strcmp(what, "check") == 0)
        return files_check(f, err);
    if (strcmp(what, "list") == 0)
        return files_list(f, err);
    return aq_fail(err, EINVAL, "'%s' is nothing that is done with files", what);
}

int files_run(char **argv)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct aq_error err = { 0 };
    struct files f = { .root = -1 };
    size_t argc = 0;
    int r;

    files_catch_signals();
    while (argv[argc])
        argc++;
    if (argc < 4)
        return 1;
    f.limits.bytes_max = strtoull(argv[1], NULL, 10);
    f.limits.entries_max = strtoull(argv[2], NULL, 10);
    f.paths = argv + 3;
    f.count = argc - 3;
    f.root = open(FILES_WORK, O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = f.root < 0 ? aq_fail_errno(&err, "the work folder '" FILES_WORK "'")
                   : files_do(argv[0], &f, &err);
    aq_closep(&f.root);
    if (r == 0)
        return 0;
    strbuf_addf(&text, "%s\n%s", err.kind ? err.kind : "file-failed", err.text);
    (void)fs_write_all(STDERR_FILENO, text.data, text.len);
    return 1;
}
