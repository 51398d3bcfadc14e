/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of folders: paths as they are kept, what is refused, their order and their JSON. */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "model/folder_mount.h"

static void test_paths(void **state)
{
    static const struct {
        const char *text, *path, *target; /* NULL = refused; "" = the folder itself */
    } rows[] = {
        { "", "", "/home/work" },
        { ".", "", "/home/work" },
        { "data", "data", "/home/work/data" },
        { "a//b/./c/", "a/b/c", "/home/work/a/b/c" },
        { "..a/b..", "..a/b..", "/home/work/..a/b.." },
        { "/srv//data/", NULL, "/srv/data" },
        { "/", NULL, "/" },
        { "..", NULL, NULL },
        { "a/../b", NULL, NULL },
        { "/a/..", NULL, NULL },
    };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct aq_error err = { 0 };
    const char *got;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int r = folder_mount_path(rows[i].text, &arena, &got, &err);

        assert_row(r == (rows[i].path ? 0 : -EINVAL), "%s", rows[i].text);
        assert_row(r < 0 || strcmp(got ? got : "", rows[i].path) == 0, "%s", rows[i].text);
        r = folder_mount_target(rows[i].text, &arena, &got, &err);
        assert_row(r == (rows[i].target ? 0 : -EINVAL), "%s", rows[i].text);
        assert_row(r < 0 || strcmp(got, rows[i].target) == 0, "%s: %s", rows[i].text, got);
    }
}

static void check_one(const char *path, const char *target, const char *why)
{
    struct folder_mount mount = {
        .name = "data", .host = "local:volume1", .path = path, .target = target
    };
    struct folder_mounts list = { &mount, 1 };
    struct aq_error err = { 0 };
    int r = folder_mounts_check(&list, &err);

    assert_row(r == (why ? -EINVAL : 0), "%s", target);
    if (!why)
        return;
    assert_row(strcmp(err.field, "mounts") == 0, "%s: %s", target, err.field);
    assert_row(strstr(err.text, why), "%s: %s", target, err.text);
}

static void test_places(void **state)
{
    static const char *const taken[] = {
        "/proc",        "/proc/1",
        "/sys/fs",      "/dev/shm",
        "/etc",         "/etc/passwd",
        "/opt/kernel",  "/opt",
        "/home",        "/",
        "/home/work",   "/opt/kernel/ssh",
        "/home/config", "/home/config/ssh",
    };
    static const char *const crooked[] = { "", "data", "/a//b", "/a/", "/a/./b", "/a/../b", "/.." };

    (void)state;
    check_one(NULL, "/home/work/data", NULL);
    check_one("a/b", "/data", NULL);
    check_one(NULL, "/processes", NULL);
    check_one(NULL, "/home/workers", NULL);
    check_one(NULL, "/opt/data", NULL);
    for (size_t i = 0; i < AQ_COUNT(taken); i++)
        check_one(NULL, taken[i], "'data' cannot be mounted at");
    for (size_t i = 0; i < AQ_COUNT(crooked); i++)
        check_one(NULL, crooked[i], "not an absolute path");
    check_one("../x", "/data", "not a path in folder 'data'");
    check_one("/x", "/data", "not a path in folder 'data'");
    check_one("", "/data", "not a path in folder 'data'");
    check_one("a\nb", "/data", "control characters");
    check_one(NULL, "/da\xff", "UTF-8");
}

static void test_lists(void **state)
{
    static char path[FOLDER_MOUNTS_BYTES_MAX + 1];
    struct folder_mount mounts[FOLDER_MOUNTS_MAX + 1] = {
        { .name = "inner", .host = "h", .target = "/home/work/data/inner" },
        { .name = "data", .host = "h", .target = "/home/work/data" },
        { .name = "srv", .host = "h", .target = "/srv" },
    };
    struct folder_mounts list = { mounts, 3 };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(folder_mounts_check(&list, &err), -EINVAL);
    assert_non_null(strstr(err.text, "order"));
    folder_mounts_sort(&list);
    assert_string_equal(mounts[0].name, "srv");
    assert_string_equal(mounts[2].name, "inner");
    assert_int_equal(folder_mounts_check(&list, &err), 0);

    mounts[2].target = mounts[1].target;
    assert_int_equal(folder_mounts_check(&list, &err), -EINVAL);
    assert_non_null(strstr(err.text, "'data' and 'inner' are both"));

    memset(path, 'x', sizeof(path) - 1);
    mounts[2].target = "/home/work/z";
    mounts[2].path = path;
    assert_int_equal(folder_mounts_check(&list, &err), -EINVAL);
    assert_non_null(strstr(err.text, "16384 bytes"));

    list.count = FOLDER_MOUNTS_MAX + 1;
    assert_int_equal(folder_mounts_check(&list, &err), -EINVAL);
    assert_non_null(strstr(err.text, "64 folders"));
}

#define ID "00000000-0000-4000-8000-000000000001"
#define HEAD "{\"folder\":\"" ID "\",\"name\":\"data\",\"host\":\"local:volume1\","

static void test_json(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        { "[]", true },
        { "[" HEAD "\"target\":\"/data\",\"mode\":\"ro\"}]", true },
        { "[" HEAD "\"path\":\"a/b\",\"target\":\"/data\",\"mode\":\"rw\"}]", true },
        { "{}", false },
        { "[1]", false },
        { "[" HEAD "\"target\":\"/data\",\"mode\":\"wd\"}]", false },
        { "[" HEAD "\"target\":\"/data\"}]", false },
        { "[" HEAD "\"path\":1,\"target\":\"/data\",\"mode\":\"rw\"}]", false },
        { "[{\"folder\":\"data\",\"name\":\"d\",\"host\":\"h\",\"target\":\"/d\",\"mode\":\"ro\"}]",
          false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        json_auto_t *list = json_load_string(rows[i].text, 0);
        struct jsonw w = jsonw_make(&text);
        struct folder_mounts got;
        struct aq_error err = { 0 };
        int r = folder_mounts_read(list, &arena, &got, &err);

        assert_row(r == (rows[i].good ? 0 : -EINVAL), "%s", rows[i].text);
        assert_row(r == 0 || strcmp(err.field, "mounts") == 0, "%s", rows[i].text);
        if (r < 0)
            continue;
        folder_mounts_write(&got, &w);
        assert_row(strcmp(text.data, rows[i].text) == 0, "%s: %s", rows[i].text, text.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
