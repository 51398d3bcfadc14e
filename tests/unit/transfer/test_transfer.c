/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "transfer/beneath.h"
#include "transfer/tree_reader.h"
#include "transfer/tree_writer.h"

static const struct tar_limits no_limits;

struct place {
    char path[64];
    int root;
    unsigned notes;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    (void)snprintf(p->path, sizeof(p->path), "/tmp/aliquot-transfer-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->root = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(p->root >= 0);
    assert_int_equal(mkdirat(p->root, "in", 0755), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    aq_closep(&p->root);
    assert_int_equal(fs_remove_tree(AT_FDCWD, p->path, NULL), 0);
    free(p);
    return 0;
}

static void on_note(void *data, const char *text)
{
    struct place *p = data;

    assert_non_null(strstr(text, "skipped: "));
    p->notes++;
}

static bool exists(const struct place *p, const char *path)
{
    struct stat st;

    return fstatat(p->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make(const struct place *p, const char *path, const char *text)
{
    assert_int_equal(fs_overwrite(p->root, path, text, strlen(text), 0644, NULL), 0);
}

static void check_text(const struct place *p, const char *path, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf read = STRBUF_INIT;

    assert_int_equal(fs_read(p->root, path, 1 << 20, &read, NULL), 0);
    assert_string_equal(read.data, text);
}

static void add(struct strbuf *out, enum tar_type type, const char *name, const char *more)
{
    static const char zeros[TAR_BLOCK];
    const struct tar_entry e = { .type = type,
                                 .name = name,
                                 .target = type == TAR_LINK ? more : NULL,
                                 .mode = 0644,
                                 .size = type == TAR_FILE ? strlen(more) : 0 };

    tar_write_head(out, &e);
    if (type == TAR_FILE) {
        strbuf_adds(out, more);
        strbuf_add(out, zeros, tar_padding(e.size));
    }
}

/* Unpack into "in", as from a stranger; ends the archive. */
static int unpack(struct place *p, struct strbuf *archive, const char *destination, const char *top,
                  struct aq_error *err)
{
    const struct tree_writer_options options = {
        .is_wary = true, .top = top, .on_note = on_note, .data = p
    };
    AQ_CLEANUP(aq_closep) int in = openat(p->root, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AQ_CLEANUP(tree_writer_freep) struct tree_writer *writer = NULL;
    AQ_CLEANUP(tar_reader_freep) struct tar_reader *reader = NULL;
    int r = tree_writer_new(in, destination, &options, &writer, err);

    tar_write_end(archive);
    assert_true(strbuf_ok(archive));
    if (r == 0)
        r = tar_reader_new(&no_limits, &tree_writer_ops, writer, &reader, err);
    if (r == 0)
        r = tar_reader_feed(reader, archive->data, archive->len, err);
    if (r == 0)
        r = tar_reader_finish(reader, err);
    return r;
}

static void test_there_and_back(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf archive = STRBUF_INIT;
    AQ_CLEANUP(tree_reader_freep) struct tree_reader *reader = NULL;
    struct place *p = *state;
    const char *path = "tree";
    char name[300], piece[700]; /* no multiple of a block */
    ssize_t got;

    memset(name, 'n', sizeof(name));
    memcpy(name, "tree/", 5);
    name[5 + 255] = '\0';
    assert_int_equal(mkdirat(p->root, "tree", 0755), 0);
    make(p, name, "long");
    make(p, "tree/line\nbreak \xff", "odd");
    make(p, "tree/empty", "");
    assert_int_equal(symlinkat("empty", p->root, "tree/link"), 0);
    assert_int_equal(mkfifoat(p->root, "tree/pipe", 0600), 0);
    assert_int_equal(tree_reader_new(p->root, &path, 1, &no_limits, &reader, NULL), 0);
    while ((got = tree_reader_read(reader, piece, sizeof(piece), NULL)) > 0)
        strbuf_add(&archive, piece, (size_t)got);
    assert_int_equal(got, 0);
    assert_non_null(memmem(archive.data, archive.len, "comment=skipped: tree/pipe", 26));
    assert_int_equal(unpack(p, &archive, "copy", "tree", NULL), 0);
    memmove(name + 8, name + 5, 256);
    memcpy(name, "in/copy/", 8);
    check_text(p, name, "long");
    check_text(p, "in/copy/line\nbreak \xff", "odd");
    check_text(p, "in/copy/link", "");
    assert_false(exists(p, "in/copy/pipe"));
}

/* Each archive writes nothing but below "in", whatever it says. */
static void test_hostile_archives(void **state)
{
    static const struct {
        const char *name, *target;
    } links[] = { { "top/a", "/etc" },         { "top/a", ".." },
                  { "top/a", "x/../.." },      { "top/a", "../../x" },
                  { "top/d/e", "../../../x" }, { "top", "elsewhere" },
                  { "top/d/e", "../../x" },    { "top/a", "" } };
    struct place *p = *state;
    struct aq_error err;

    make(p, "outside", "kept");
    assert_int_equal(symlinkat("../outside", p->root, "in/way"), 0);
    assert_int_equal(symlinkat("..", p->root, "in/up"), 0);
    for (size_t i = 0; i < AQ_COUNT(links); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf archive = STRBUF_INIT;

        add(&archive, TAR_LINK, links[i].name, links[i].target);
        p->notes = 0;
        assert_int_equal(unpack(p, &archive, "", "top", &err), 0);
        assert_int_equal(p->notes, 1);
        assert_false(exists(p, "in/top/a"));
        assert_false(exists(p, "in/top/d/e"));
    }
    for (int i = 0; i < 5; i++) {
        static const char *const names[] = { "../outside", "/tmp/aliquot-outside", "up/outside",
                                             "top/../../outside", "other" };
        AQ_CLEANUP(strbuf_donep) struct strbuf archive = STRBUF_INIT;

        add(&archive, TAR_FILE, names[i], "changed");
        assert_true(unpack(p, &archive, "", i == 2 ? "up" : "top", &err) < 0);
        check_text(p, "outside", "kept");
        assert_false(exists(p, "in/other"));
    }
}

/* A link that is in the way is replaced, not followed; one inside the copy is kept. */
static void test_links_in_the_way(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf archive = STRBUF_INIT;
    struct place *p = *state;

    make(p, "outside", "kept");
    assert_int_equal(mkdirat(p->root, "in/top", 0755), 0);
    assert_int_equal(symlinkat("../../outside", p->root, "in/top/file"), 0);
    add(&archive, TAR_FILE, "top/file", "new");
    add(&archive, TAR_LINK, "top/d/link", "../file");
    assert_int_equal(unpack(p, &archive, "", "top", NULL), 0);
    check_text(p, "outside", "kept");
    check_text(p, "in/top/file", "new");
    check_text(p, "in/top/d/link", "new");
    assert_int_equal(p->notes, 0);
}

static void test_a_cut_archive_leaves_no_half_file(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf archive = STRBUF_INIT;
    const struct tree_writer_options options = { .is_wary = false };
    AQ_CLEANUP(tar_reader_freep) struct tar_reader *reader = NULL;
    struct tree_writer *writer = NULL;
    struct place *p = *state;
    struct aq_error err;

    add(&archive, TAR_FILE, "first", "1");
    add(&archive, TAR_FILE, "second", "22222");
    assert_int_equal(tree_writer_new(p->root, "./", &options, &writer, NULL), 0);
    assert_int_equal(tar_reader_new(&no_limits, &tree_writer_ops, writer, &reader, NULL), 0);
    assert_int_equal(tar_reader_feed(reader, archive.data, (size_t)3 * TAR_BLOCK + 2, NULL), 0);
    assert_int_equal(tar_reader_finish(reader, &err), -ECONNRESET);
    tree_writer_free(writer);
    check_text(p, "first", "1");
    assert_false(exists(p, "second"));
    assert_int_equal(unlinkat(p->root, "first", 0), 0);
    assert_int_equal(unlinkat(p->root, "in", AT_REMOVEDIR), 0);
    assert_int_equal(rmdir(p->path), 0); /* nothing else was there */
    assert_int_equal(mkdir(p->path, 0755), 0);
}

#define WRITERS 8
#define WRITERS_EACH 3000

static void *make_writers(void *data)
{
    const struct tree_writer_options options = { .is_wary = true };
    const struct place *p = data;

    for (int i = 0; i < WRITERS_EACH; i++) {
        AQ_CLEANUP(tree_writer_freep) struct tree_writer *writer = NULL;

        if (tree_writer_new(p->root, "in", &options, &writer, NULL) < 0)
            return data;
    }
    return NULL;
}

static void test_writers_in_threads_leave_the_umask(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf archive = STRBUF_INIT;
    struct place *p = *state;
    mode_t before = umask(026);
    pthread_t threads[WRITERS];
    void *failed;
    struct stat st;

    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_writers, p), 0);
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(fs_umask(), 026);
    add(&archive, TAR_FILE, "file", "1");
    assert_int_equal(unpack(p, &archive, "./", NULL, NULL), 0);
    assert_int_equal(fstatat(p->root, "in/file", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(umask(before), 026);
}

static void test_limits(void **state)
{
    const struct tar_limits limits = { .entries_max = 2, .bytes_max = 10 };
    struct tar_count count = { 0 };
    struct aq_error err;

    (void)state;
    assert_int_equal(tar_count_entry(&count, &limits, 10, &err), 0);
    assert_int_equal(tar_count_entry(&count, &limits, 0, &err), 0);
    assert_int_equal(tar_count_entry(&count, &limits, 0, &err), -EFBIG);
    count = (struct tar_count){ .bytes = 1 };
    assert_int_equal(tar_count_entry(&count, &limits, UINT64_MAX, &err), -EFBIG);
    assert_string_equal(err.kind, "transfer-too-large");
}

static void test_paths(void **state)
{
    char out[PATH_MAX], name[PATH_MAX + 2];

    (void)state;
    assert_int_equal(beneath_clean("./a//b/./c/", out, NULL), 0);
    assert_string_equal(out, "a/b/c");
    assert_int_equal(beneath_clean(".", out, NULL), 0);
    assert_string_equal(out, "");
    assert_int_equal(beneath_clean("/a", out, NULL), -EINVAL);
    assert_int_equal(beneath_clean("a/../b", out, NULL), -EINVAL);
    memset(name, 'x', sizeof(name));
    name[256] = '\0';
    assert_int_equal(beneath_clean(name, out, NULL), -ENAMETOOLONG);
    for (size_t i = 1; i < PATH_MAX; i += 2)
        name[i] = '/';
    name[256] = 'x';
    name[PATH_MAX + 1] = '\0';
    assert_int_equal(beneath_clean(name, out, NULL), -ENAMETOOLONG);
}

/* As a server may list them: joined, and not cleaned. */
static void test_a_path_that_is_too_long(void **state)
{
    char path[3 * PATH_MAX];
    const char *name;

    (void)state;
    memset(path, 'd', sizeof(path));
    for (size_t i = 100; i < sizeof(path); i += 100)
        path[i] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(beneath_open_parent(AT_FDCWD, path, true, true, &name), -ENAMETOOLONG);
    assert_int_equal(beneath_open_parent(AT_FDCWD, path, true, false, &name), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_archives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links_in_the_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_cut_archive_leaves_no_half_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_writers_in_threads_leave_the_umask, setup, teardown),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_a_path_that_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
