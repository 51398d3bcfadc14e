/* SPDX-License-Identifier: Apache-2.0 */
/* The user "work" in images of all kinds. */
#include "testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "monitor/passwd.h"

#define USER "work:x:1000:1001::/home/work:/bin/sh\n"
#define GROUP "work:x:1001:\n"

struct image {
    char path[64];
    struct passwd_user user;
};

static int image_new(void **state)
{
    struct image *image = calloc(1, sizeof(*image));

    strcpy(image->path, "/tmp/aliquot-accounts-XXXXXX");
    if (!mkdtemp(image->path))
        return -1;
    image->user = (struct passwd_user){
        .uid = 1000, .gid = 1001, .id_base = getuid(), .home = "/home/work"
    };
    *state = image;
    return 0;
}

static int image_end(void **state)
{
    struct image *image = *state;

    (void)fs_remove_tree(AT_FDCWD, image->path, NULL);
    free(image);
    return 0;
}

static char *path_of(const struct image *image, const char *name)
{
    char *path = aq_format("%s/%s", image->path, name);

    assert_non_null(path);
    return path;
}

static void make(const struct image *image, const char *folder)
{
    AQ_CLEANUP(aq_freep) char *path = path_of(image, folder);

    assert_int_equal(mkdir(path, 0755), 0);
}

static void put(const struct image *image, const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *path = path_of(image, name);

    assert_int_equal(fs_write_quick(AT_FDCWD, path, text, strlen(text), 0644, NULL), 0);
}

static void check(const struct image *image, const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *path = path_of(image, name);
    AQ_CLEANUP(strbuf_donep) struct strbuf found = STRBUF_INIT;

    assert_int_equal(fs_read(AT_FDCWD, path, 65536, &found, NULL), 0);
    assert_string_equal(found.data, text);
}

static void add(const struct image *image)
{
    struct aq_error err = { 0 };

    if (passwd_add_user(image->path, &image->user, &err) < 0)
        fail_msg("%s", err.text);
}

/* Added once, however often the container starts. */
static void check_added(const struct image *image, const char *passwd, const char *group)
{
    for (int i = 0; i < 2; i++) {
        add(image);
        check(image, "etc/passwd", passwd);
        check(image, "etc/group", group);
    }
}

static void test_image_without_etc(void **state)
{
    check_added(*state, USER, GROUP);
}

static void test_lines_of_the_image_stay(void **state)
{
    const struct image *image = *state;

    make(image, "etc");
    put(image, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nalice:x:10:10::/a:/bin/sh");
    put(image, "etc/group", "root:x:0:\n");
    check_added(image, USER "root:x:0:0:root:/root:/bin/sh\nalice:x:10:10::/a:/bin/sh",
                GROUP "root:x:0:\n");
}

static void test_number_is_of_another_user(void **state)
{
    const struct image *image = *state;

    make(image, "etc");
    put(image, "etc/passwd", "ubuntu:x:1000:1000::/home/ubuntu:/bin/sh\n");
    put(image, "etc/group", "ubuntu:x:1001:\n");
    check_added(image, USER "ubuntu:x:1000:1000::/home/ubuntu:/bin/sh\n", GROUP "ubuntu:x:1001:\n");
}

static void test_name_has_another_number(void **state)
{
    const struct image *image = *state;

    make(image, "etc");
    put(image, "etc/passwd", "work:x:77:77::/work:/bin/sh\nworker:x:1000:1::/:/bin/sh\n");
    put(image, "etc/group", "work:x:77:\n");
    check_added(image, USER "work:x:77:77::/work:/bin/sh\nworker:x:1000:1::/:/bin/sh\n",
                GROUP "work:x:77:\n");
}

static void test_image_has_it_already(void **state)
{
    static const char passwd[] = "root:x:0:0::/:/bin/sh\nwork:x:1000:5:Me:/home/work:/bin/zsh\n";
    const struct image *image = *state;

    make(image, "etc");
    put(image, "etc/passwd", passwd);
    put(image, "etc/group", "wheel:x:5:work\nwork:x:1001:work\n");
    check_added(image, passwd, "wheel:x:5:work\nwork:x:1001:work\n");
}

static void test_home_is_another(void **state)
{
    const struct image *image = *state;

    make(image, "etc");
    put(image, "etc/passwd", "work:x:1000:1001::/:/bin/sh\n");
    put(image, "etc/group", "");
    check_added(image, USER "work:x:1000:1001::/:/bin/sh\n", GROUP);
}

static void test_shell_of_the_image(void **state)
{
    const struct image *image = *state;

    make(image, "bin");
    put(image, "bin/bash", "");
    check_added(image, "work:x:1000:1001::/home/work:/bin/bash\n", GROUP);
}

static void test_root_stays_root(void **state)
{
    struct image *image = *state;
    struct stat st;
    AQ_CLEANUP(aq_freep) char *passwd = path_of(image, "etc/passwd");

    image->user.uid = image->user.gid = 0;
    add(image);
    assert_int_equal(stat(passwd, &st), -1);
}

static void test_lines_that_are_odd(void **state)
{
    static const char odd[] = "\n:::\nnothing\n1000\nwork\nwork:\n::1000";
    const struct image *image = *state;

    make(image, "etc");
    put(image, "etc/passwd", odd);
    put(image, "etc/group", odd);
    add(image);
    check(image, "etc/passwd",
          "work:x:1000:1001::/home/work:/bin/sh\n"
          "\n:::\nnothing\n1000\nwork\nwork:\n::1000");
}

/* A link out of the image leads to its own root. */
static void test_links_stay_inside(void **state)
{
    const struct image *image = *state;
    AQ_CLEANUP(aq_freep) char *link = path_of(image, "etc/passwd");

    make(image, "etc");
    make(image, "data");
    assert_int_equal(symlink("/data/../../../../data/users", link), 0);
    add(image);
    check(image, "data/users", USER);
}

static void test_no_file(void **state)
{
    const struct image *image = *state;
    struct aq_error err = { 0 };

    make(image, "etc");
    make(image, "etc/passwd");
    assert_true(passwd_add_user(image->path, &image->user, &err) < 0);
    assert_non_null(strstr(err.text, "etc/passwd"));
}

#define IMAGE_TEST(name) cmocka_unit_test_setup_teardown(name, image_new, image_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IMAGE_TEST(test_image_without_etc),
        IMAGE_TEST(test_lines_of_the_image_stay),
        IMAGE_TEST(test_number_is_of_another_user),
        IMAGE_TEST(test_name_has_another_number),
        IMAGE_TEST(test_image_has_it_already),
        IMAGE_TEST(test_home_is_another),
        IMAGE_TEST(test_shell_of_the_image),
        IMAGE_TEST(test_root_stays_root),
        IMAGE_TEST(test_lines_that_are_odd),
        IMAGE_TEST(test_links_stay_inside),
        IMAGE_TEST(test_no_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
