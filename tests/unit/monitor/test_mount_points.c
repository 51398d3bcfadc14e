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
    char path[64];
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
    return mkdirat(image->root, "etc", 0755) | mkdirat(image->root, "proc", 0755)
           | mkdirat(image->root, "usr", 0755);
}

static int image_end(void **state)
{
    struct image *image = *state;

    (void)close(image->root);
    (void)fs_remove_tree(AT_FDCWD, image->path, NULL);
    free(image);
    return 0;
}

static void put(const struct image *image, const char *name, const char *text)
{
    assert_int_equal(fs_write_quick(image->root, name, text, strlen(text), 0644, NULL), 0);
}

static int prepare(const struct image *image, const char *target, bool is_folder,
                   struct aq_error *err)
{
    char *items[] = { (char *)(uintptr_t)target };
    struct sandbox sandbox = { .id_base = getuid() };

    *(is_folder ? &sandbox.folders : &sandbox.files) = (struct texts){ .items = items, .count = 1 };
    return mount_points_prepare(image->path, &sandbox, err);
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
        { "/proc", "leads from above '/opt/a' into /proc" },
        { "../../proc", "into /proc" },
        { "/nowhere", "the image's '/opt' is no folder and no link to one" },
        { "/proc/self/fd", "'/opt' is no folder" },
        { "opt", "'/opt' is no folder" },
        { "/etc/file", "'/opt' is no folder" },
    };
    const struct image *image = *state;

    put(image, "etc/file", "");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links_give_way, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_the_rest_stays, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_links_above, image_new, image_end),
        cmocka_unit_test_setup_teardown(test_links_that_are_refused, image_new, image_end),
    };

    return cmocka_run_group_tests_name("monitor/mount_points", tests, NULL, NULL);
}
