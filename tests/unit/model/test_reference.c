/* SPDX-License-Identifier: Apache-2.0 */
/* Names of images: what they mean, what is refused, what an administrator admits. */
#include "testing.h"

#include <errno.h>

#include "model/reference.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *text, *canonical; /* NULL = refused */
} names[] = {
    { "python", "docker.io/library/python:latest" },
    { "python:3.9", "docker.io/library/python:3.9" },
    { "docker://python:3.9", "docker.io/library/python:3.9" },
    { "team/python:3.9", "docker.io/team/python:3.9" },
    { "docker.io/python", "docker.io/library/python:latest" },
    { "localhost/python", "localhost/python:latest" },
    { "localhost:5000/python", "localhost:5000/python:latest" },
    { "reg.example/a/b/c:x", "reg.example/a/b/c:x" },
    { "[::1]:5000/a:x", "[::1]:5000/a:x" },
    { "REG/a", "REG/a:latest" },
    { "reg.example/a@sha256:" HEX, "reg.example/a@sha256:" HEX },
    { "reg.example/a:t@sha256:" HEX, "reg.example/a:t@sha256:" HEX },
    { "a__b/c-----d.e_f", "docker.io/a__b/c-----d.e_f:latest" },
    { "oci-archive:/srv/x.tar", "oci-archive:/srv/x.tar" },
    { "docker-archive:/srv/x.tar:a/b:tag", "docker-archive:/srv/x.tar:a/b:tag" },
    { "oci:/srv/layout:tag", "oci:/srv/layout:tag" },
    { "rootfs:/srv/root", "rootfs:/srv/root" },
    { "rootfs:/", "rootfs:/" },
    { "host", "host" },
    { "", NULL },
    { "Python", NULL },
    { "a//b", NULL },
    { "/a", NULL },
    { "a/", NULL },
    { "a:", NULL },
    { "a:-x", NULL },
    { "a:x y", NULL },
    { "a@sha256:"
      "0123",
      NULL },
    { "a@sha512:" HEX, NULL },
    { "a@", NULL },
    { "-a", NULL },
    { "a-", NULL },
    { "a___b", NULL },
    { "a..b", NULL },
    { "reg.example:port/a", NULL },
    { "reg.example:123456/a", NULL },
    { "[::1/a", NULL },
    { "-reg.example/a", NULL },
    { "a\nb", NULL },
    { "rootfs:srv/root", NULL },
    { "rootfs:/srv/../etc", NULL },
    { "rootfs:/srv/./x", NULL },
    { "rootfs:/srv//x", NULL },
    { "rootfs:/srv/", NULL },
    { "rootfs:/srv/a:b", NULL },
    { "rootfs:/srv/a\\b", NULL },
    { "rootfs:/srv/a\nb", NULL },
    { "rootfs:", NULL },
    { "oci:/srv/x:", NULL },
    { "oci:/srv/x:-a", NULL },
    { "oci-archive:/srv/x.tar:@1", NULL },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        struct reference ref;
        struct aq_error err = { 0 };
        int r = reference_parse(names[i].text, NULL, &ref, &err);

        assert_row((r == 0) == (names[i].canonical != NULL), "'%s': %d %s", names[i].text, r,
                   err.text);
        if (r < 0) {
            assert_row(r == -EINVAL && strcmp(err.field, "image") == 0, "'%s'", names[i].text);
            continue;
        }
        assert_row(strcmp(ref.text, names[i].canonical) == 0, "'%s': %s", names[i].text, ref.text);
        reference_done(&ref);
    }
}

static void test_parts(void **state)
{
    struct reference ref;

    (void)state;
    assert_int_equal(reference_parse("a/b@sha256:" HEX, "reg.example:5000", &ref, NULL), 0);
    assert_string_equal(ref.registry, "reg.example:5000");
    assert_string_equal(ref.repository, "a/b");
    assert_null(ref.tag);
    assert_string_equal(ref.digest, "sha256:" HEX);
    assert_true(reference_is_pinned(&ref));
    reference_done(&ref);
    assert_int_equal(reference_parse("python", "reg.example", &ref, NULL), 0);
    assert_string_equal(ref.text, "reg.example/python:latest");
    assert_false(reference_is_pinned(&ref));
    reference_done(&ref);
    assert_int_equal(reference_parse("docker-archive:/x:a/b:c", NULL, &ref, NULL), 0);
    assert_string_equal(ref.path, "/x");
    assert_string_equal(ref.name, "a/b:c");
    reference_done(&ref);
}

static const struct {
    const char *name, *patterns[3];
    bool admitted;
} rules[] = {
    { "python", { "*" }, true },
    { "python", { NULL }, false },
    { "python", { "host" }, false },
    { "python", { "docker.io/library" }, true },
    { "python", { "docker.io/library/python" }, true },
    { "python", { "docker.io/library/pyth" }, false },
    { "python", { "docker.io" }, true },
    { "python", { "other.example", "docker.io" }, true },
    { "python", { "*/python" }, true },
    { "reg.example/a/b", { "reg.*/b" }, true },
    { "reg.example/a/b", { "reg.*/c" }, false },
    { "reg.example.evil/a", { "reg.example" }, false },
    { "reg.example:5000/a", { "reg.example" }, false },
    { "reg.example:5000/a", { "reg.example:*" }, true },
    { "host", { "*" }, false },
    { "host", { "*", "host" }, true },
    { "rootfs:/srv/x", { "*", "host" }, false },
    { "rootfs:/srv/x", { "rootfs:/srv" }, true },
    { "rootfs:/srvx", { "rootfs:/srv" }, false },
    { "rootfs:/srv/x", { "rootfs:/" }, true },
    { "rootfs:/srv/x", { "rootfs:/srv/" }, true },
    { "rootfs:/srv/x", { "rootfs:/srv/*" }, true },
    { "oci:/srv/x:tag", { "oci:/srv/x" }, true },
    { "oci-archive:/srv/x.tar:tag", { "oci-archive:/srv/*.tar" }, true },
};

static void test_allow(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rules); i++) {
        struct reference ref;
        size_t count = 0;

        assert_int_equal(reference_parse(rules[i].name, NULL, &ref, NULL), 0);
        while (rules[i].patterns[count])
            count++;
        assert_row(reference_is_allowed(&ref, rules[i].patterns, count) == rules[i].admitted,
                   "'%s' by row %zu", rules[i].name, i);
        reference_done(&ref);
    }
}

static const struct {
    const char *pattern, *why; /* NULL = fine */
} patterns[] = {
    { "*", NULL },
    { "host", NULL },
    { "docker.io", NULL },
    { "docker.io/library/python", NULL },
    { "reg.example:5000", NULL },
    { "reg.example:*/team", NULL },
    { "rootfs:/srv/my images", NULL },
    { "oci:*", NULL },
    { "", "empty" },
    { "docker.io/library/python:3.9", "names a tag" },
    { "docker.io/a@sha256:00", "digest" },
    { "docker.io, quay.io", "character" },
    { "a\"b", "character" },
    { "a\nb", "character" },
    { "rootfs:srv", "absolute" },
    { "rootfs:", "absolute" },
    { "dir:/srv", "is none of" },
};

static void test_patterns(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(patterns); i++) {
        struct aq_error err = { 0 };
        int r = reference_check_pattern(patterns[i].pattern, &err);

        assert_row(r == (patterns[i].why ? -EINVAL : 0), "'%s': %s", patterns[i].pattern, err.text);
        if (patterns[i].why && !strstr(err.text, patterns[i].why))
            fail_msg("'%s': %s", patterns[i].pattern, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_allow),
        cmocka_unit_test(test_patterns),
    };

    return cmocka_run_group_tests_name("model/reference", tests, NULL, NULL);
}
