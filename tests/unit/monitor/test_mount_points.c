/* SPDX-License-Identifier: Apache-2.0 */
/* Links of images at places that something is mounted at. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "monitor/mount_points.h"

struct image {
    char path[64], home[64]; /* the home directory is not yet mounted */
    int root;
};

static int image_new(void **state)
{
    struct image *image = calloc(1, sizeof(*image));

    strcpy(image->path, "/tmp/aliquot-points-XXXXXX");
    if (!mkdtemp(image->path))
        return -1;
    image->root = open(image->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = image;
    strcpy(image->home, "/tmp/aliquot-points-XXXXXX");
    if (!mkdtemp(image->home))
        return -1;
    return mkdirat(image->root, "etc", 0755) | mkdirat(image->root, "proc", 0755)
           | mkdirat(image->root, "usr", 0755);
}

static int image_end(void **state)
{
    struct image *image = *state;

    (void)close(image->root);
    (void)fs_remove_tree(AT_FDCWD, image->path, NULL);
    (void)fs_remove_tree(AT_FDCWD, image->home, NULL);
    free(image);
    return 0;
}

static void put(const struct image *image, const char *name, const char *text)
{
    assert_int_equal(fs_write_quick(image->root, name, text, strlen(text), 0644, NULL), 0);
}

/* With others that the runtime mounts. */
static int prepare_beside(const struct image *image, const char *target, bool is_folder,
                          const char *other, struct aq_error *err)
{
    char *files[] = { (char *)(uintptr_t)target };
    char *folders[] = { (char *)(uintptr_t) "/proc", (char *)(uintptr_t) "/home/work",
                        (char *)(uintptr_t)other, (char *)(uintptr_t)target };
    struct sandbox sandbox = { .id_base = getuid(),
                               .home = "/home/work",
                               .files = { .items = files, .count = is_folder ? 0 : 1 },
                               .folders = { .items = folders, .count = is_folder ? 4 : 3 } };

    return mount_points_prepare(image->path, image->home, &sandbox, err);
}

static int prepare(const struct image *image, const char *target, bool is_folder,
                   struct aq_error *err)
{
    return prepare_beside(image, target, is_folder, "/proc", err);
}

static mode_t type_of(const struct image *image, const char *name)
{
    struct stat st;

    return fstatat(image->root, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_mode & S_IFMT;
}

static void test_links_give_way(void **state)
{
    static const char *const targets[] = {
        "/usr/zone", "../usr/zone", "zone", "nothing", "/proc/self/mem", "../../../../etc/shadow"
    };
    const struct image *image = *state;

    put(image, "usr/zone", "Mars");
    put(image, "etc/zone", "Mars");
    for (size_t i = 0; i < AQ_COUNT(targets); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        (void)unlinkat(image->root, "etc/localtime", 0);
        assert_int_equal(symlinkat(targets[i], image->root, "etc/localtime"), 0);
        assert_int_equal(prepare(image, "/etc/localtime", false, NULL), 0);
        assert_int_equal(type_of(image, "etc/localtime"), S_IFREG);
        assert_int_equal(fs_read(image->root, "usr/zone", 100, &text, NULL), 0);
        assert_string_equal(text.data, "Mars");
    }
    assert_int_equal(symlinkat("/usr", image->root, "etc/folder"), 0);
    assert_int_equal(prepare(image, "/etc/folder", true, NULL), 0);
    assert_int_equal(type_of(image, "etc/folder"), S_IFDIR);
    assert_int_equal(symlinkat("/usr", image->root, "top"), 0);
    assert_int_equal(prepare(image, "/top", true, NULL), 0);
    assert_int_equal(type_of(image, "top"), S_IFDIR);
}

static void test_the_rest_stays(void **state)
{
    const struct image *image = *state;

    put(image, "etc/hosts", "its own");
    assert_int_equal(prepare(image, "/etc/hosts", false, NULL), 0);
    assert_int_equal(prepare(image, "/etc/none", false, NULL), 0);
    assert_int_equal(prepare(image, "/opt/kernel/x/y", false, NULL), 0);
    assert_int_equal(type_of(image, "etc/none"), 0);
    assert_int_equal(type_of(image, "opt"), 0);
    assert_int_equal(type_of(image, "etc/hosts"), S_IFREG);
}

/* They are found inside, and the link at the end gives way there. */
static void test_links_above(void **state)
{
    const struct image *image = *state;

    assert_int_equal(symlinkat("/usr", image->root, "opt"), 0);
    assert_int_equal(symlinkat("/etc/passwd", image->root, "usr/tool"), 0);
    assert_int_equal(prepare(image, "/opt/tool", false, NULL), 0);
    assert_int_equal(type_of(image, "opt"), S_IFLNK);
    assert_int_equal(type_of(image, "usr/tool"), S_IFREG);
    assert_int_equal(prepare(image, "/opt/none/tool", false, NULL), 0);
}

static void test_links_that_are_refused(void **state)
{
    static const struct {
        const char *target, *words;
    } rows[] = {
        { "/proc", "by a link in the image '/opt/a' is below '/proc'" },
        { "../../proc", "is below '/proc'" },
        { "/home/work", "is below '/home/work'" },
        { "/nowhere", "the image's '/opt' is no folder and no link to one" },
        { "/proc/self/fd", "'/opt' is no folder" },
        { "opt", "'/opt' is no folder" },
        { "/etc/file", "'/opt' is no folder" },
    };
    const struct image *image = *state;

    put(image, "etc/file", "");
    assert_int_equal(mkdirat(image->root, "home", 0755), 0);
    assert_int_equal(mkdirat(image->root, "home/work", 0755), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct aq_error err = { 0 };

        assert_int_equal(symlinkat(rows[i].target, image->root, "opt"), 0);
        assert_int_equal(prepare(image, "/opt/a/b/c", false, NULL), -EINVAL);
        assert_int_equal(prepare(image, "/opt/a", false, &err), -EINVAL);
        if (!strstr(err.text, rows[i].words))
            fail_msg("'%s': '%s'", rows[i].target, err.text);
        assert_int_equal(unlinkat(image->root, "opt", 0), 0);
    }
}

/* Process 1 is there: no link is followed, wherever it leads. */
static void test_links_above_what_is_ours(void **state)
{
    static const struct {
        const char *link, *target, *words; /* NULL = the link gives way */
    } rows[] = {
        { "opt", "/usr", "'/opt' is a link" },
        { "opt", "/nowhere", "'/opt' is a link" },
        { "usr/../opt", "usr", "'/opt' is a link" },
        { "opt/kernel", "/usr", "'/opt/kernel' is a link" },
        { "opt/kernel", "/proc/self", "'/opt/kernel' is a link" },
        { "opt/kernel/tool", "/usr", "'/opt/kernel/tool' is a link" },
        { "opt/kernel/tool/a", "/proc/self/exe", NULL },
    };
    const struct image *image = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct aq_error err = { 0 };
        int r;

        (void)fs_remove_tree(image->root, "opt", NULL);
        for (const char *const *name =
                 (const char *const[]){ "opt", "opt/kernel", "opt/kernel/tool", NULL };
             *name && strlen(*name) < strlen(rows[i].link) && strncmp(rows[i].link, "opt", 3) == 0;
             name++)
            assert_int_equal(mkdirat(image->root, *name, 0755), 0);
        assert_int_equal(symlinkat(rows[i].target, image->root, rows[i].link), 0);
        r = prepare(image, "/opt/kernel/tool/a", false, &err);
        assert_row(r == (rows[i].words ? -EINVAL : 0), "%s: %d", rows[i].link, r);
        assert_row(!rows[i].words || strstr(err.text, rows[i].words), "%s: '%s'", rows[i].link,
                   err.text);
        if (!rows[i].words)
            assert_int_equal(type_of(image, "opt/kernel/tool/a"), S_IFREG);
    }
}

/* What lies over it, by its name or by a link, could be anything. */
static void test_mounts_over_what_is_ours(void **state)
{
    static const char *const others[] = { "/opt", "/opt/kernel", "/data/kernel" };
    const struct image *image = *state;

    assert_int_equal(mkdirat(image->root, "opt", 0755), 0);
    assert_int_equal(symlinkat("opt", image->root, "data"), 0);
    for (size_t i = 0; i < AQ_COUNT(others); i++) {
        struct aq_error err = { 0 };

        assert_int_equal(prepare_beside(image, "/opt/kernel/a", false, others[i], &err), -EINVAL);
        assert_row(strstr(err.text, others[i]), "%s: '%s'", others[i], err.text);
    }
    assert_int_equal(prepare_beside(image, "/opt/kernel/ssh/a", false, "/opt/kernel/ssh", NULL), 0);
    assert_int_equal(prepare_beside(image, "/srv/a/b", false, "/srv/a", NULL), 0);
}

/* The container's user makes these. */
static void test_links_at_home(void **state)
{
    const struct image *image = *state;
    int home = open(image->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct aq_error err = { 0 };

    assert_int_equal(symlinkat("/opt/kernel", home, "data"), 0);
    assert_int_equal(prepare(image, "/home/work/data/a", true, &err), -EINVAL);
    assert_non_null(strstr(err.text, "'/home/work/data' is a link"));
    assert_int_equal(prepare(image, "/home/work/data", true, NULL), 0);
    assert_int_equal(prepare(image, "/home/work/data/a", true, NULL), 0);
    aq_closep(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links_give_way, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_the_rest_stays, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_links_above, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_links_that_are_refused, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_links_above_what_is_ours, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_mounts_over_what_is_ours, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_links_at_home, image_new, image_end),
    };

    return cmocka_run_group_tests_name("monitor/mount_points", tests, NULL, NULL);
}
