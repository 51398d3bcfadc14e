/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of [image]: what is rejected, with which key, and what skopeo is told of the rest. */
#include "testing.h"

#include <errno.h>
#include <unistd.h>

#include "agent/settings/image_registries.h"

/* settings_load() of a file with this in it. */
static int load(const char *text, struct settings *ret, struct aq_error *err)
{
    char path[] = "/tmp/aq-lists-XXXXXX";
    int fd = mkstemp(path), r;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    r = settings_load(path, "/tmp/none", 0, ret, err);
    (void)unlink(path);
    return r;
}

static const struct {
    const char *text, *field, *why; /* field NULL = accepted */
} rows[] = {
    { "", NULL, NULL },
    { "[image]\nallow = []\n", NULL, NULL },
    { "[image]\nallow = \"* host\"\n", NULL, NULL },
    { "[image]\nallow = [\"docker.io\", \"reg.example:5000/team\", \"rootfs:/srv/my images\"]\n",
      NULL, NULL },
    { "[image]\nallow = [\"docker.io\", \"quay.io/a:1\"]\n", "image.allow",
      "'quay.io/a:1' names a tag" },
    { "[image]\nallow = [\"\"]\n", "image.allow", "empty" },
    { "[image]\nallow = [1]\n", "image.allow[0]", "list of texts" },
    { "[image]\nmirrors = [\"docker.io=a.example\", \"quay.io=b.example:5000/quay\"]\n", NULL,
      NULL },
    { "[image]\nmirrors = [\"docker.io=a.example\", \"quay.io\"]\n", "image.mirrors",
      "'quay.io' is not REGISTRY=MIRROR" },
    { "[image]\nmirrors = [\"=a.example\"]\n", "image.mirrors", "not REGISTRY=MIRROR" },
    { "[image]\nmirrors = [\"docker.io=\"]\n", "image.mirrors", "not REGISTRY=MIRROR" },
    { "[image]\nmirrors = [\"docker.io=a\\\"b\"]\n", "image.mirrors", "not REGISTRY=MIRROR" },
    { "[image]\nmirrors = [\"docker.io=http://a\"]\n", "image.mirrors", "not REGISTRY=MIRROR" },
    { "[image]\ninsecure = [\"127.0.0.1:5000\", \"[::1]:5000\"]\n", NULL, NULL },
    { "[image]\ninsecure = [\"a b\"]\n", "image.insecure", "'a b' is not the address" },
    { "[image]\ninsecure = [\"https://a\"]\n", "image.insecure", "not the address of a registry" },
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct settings settings = { .state = NULL };
        struct aq_error err = { 0 };
        int r = load(rows[i].text, &settings, &err);

        assert_row(r == (rows[i].field ? -EINVAL : 0), "row %zu: %s", i, err.text);
        if (rows[i].field) {
            assert_string_equal(err.field, rows[i].field);
            if (!strstr(err.text, rows[i].why))
                fail_msg("row %zu: %s", i, err.text);
        }
        settings_done(&settings);
    }
}

/* Mirrors of one registry stay together and in order; a registry is written once. */
static void test_registries(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct settings settings = { .state = NULL };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(load("[image]\n"
                          "mirrors = [\"docker.io=m1:5000\", \"quay.io=q\", \"docker.io=m2\"]\n"
                          "insecure = [\"own:5000\", \"m1:5000\", \"quay.io\"]\n",
                          &settings, &err),
                     0);
    image_registries_write(&settings, &out);
    assert_string_equal(
        out.data,
        "unqualified-search-registries = []\n"
        "\n[[registry]]\nprefix = \"own:5000\"\nlocation = \"own:5000\"\ninsecure = true\n"
        "\n[[registry]]\nprefix = \"m1:5000\"\nlocation = \"m1:5000\"\ninsecure = true\n"
        "\n[[registry]]\nprefix = \"docker.io\"\nlocation = \"docker.io\"\ninsecure = false\n"
        "[[registry.mirror]]\nlocation = \"m1:5000\"\ninsecure = true\n"
        "[[registry.mirror]]\nlocation = \"m2\"\ninsecure = false\n"
        "\n[[registry]]\nprefix = \"quay.io\"\nlocation = \"quay.io\"\ninsecure = true\n"
        "[[registry.mirror]]\nlocation = \"q\"\ninsecure = false\n");
    settings_done(&settings);
}

static void test_no_registries(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct settings settings = { .state = NULL };

    (void)state;
    assert_int_equal(load("", &settings, NULL), 0);
    image_registries_write(&settings, &out);
    assert_int_equal(out.len, 0);
    settings_done(&settings);
}

static void note_registry(void *data, const char *host, uint16_t port)
{
    strbuf_addf(data, "%s:%u ", host, port);
}

/* What may be reached wherever it is: what the settings name, and nothing that only looks so. */
static void test_where_they_are(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct settings settings = { .state = NULL };

    (void)state;
    assert_int_equal(
        load("[image]\nregistry = \"reg.example\"\n"
             "allow = [\"a.example:5000/team\", \"docker.io\", \"localhost/x\", \"*.example\","
             " \"rootfs:/srv/my.images\", \"oci:/x\", \"host\", \"team/a.b\"]\n"
             "mirrors = [\"quay.io=127.0.0.1:5001/quay\"]\n"
             "insecure = [\"dock\", \"[::1]:5000\"]\n",
             &settings, NULL),
        0);
    image_registries_each(&settings, note_registry, &out);
    assert_string_equal(out.data, "reg.example:0 dock:0 quay.io:0 127.0.0.1:5001 a.example:5000 "
                                  "localhost:0 ");
    settings_done(&settings);
}

/* Entries begin the name of an image as in containers-registries.conf(5): at a '/' or ':'. */
static void test_one_image(void **state)
{
    static const struct {
        const char *image;
        bool has_mirror, may_lack_tls;
    } images[] = {
        { "own:5000/a", false, true },
        { "own:5001/a", false, false },
        { "plain.example/a", false, true },
        { "plain.example:5000/a", false, true },
        { "plain.example2/a", false, false },
        { "reg.example/team/a", false, true },
        { "reg.example/teams/a", false, false },
        { "docker.io/library/a", true, false },
        { "quay.io/a", true, true },
        { "m1.example:5000/a", false, false },
    };
    struct settings settings = { .state = NULL };

    (void)state;
    assert_int_equal(load("[image]\n"
                          "mirrors = [\"docker.io=m1.example:5000\", \"quay.io=q\"]\n"
                          "insecure = [\"own:5000\", \"plain.example\", \"reg.example/team\","
                          " \"quay.io\"]\n",
                          &settings, NULL),
                     0);
    for (size_t i = 0; i < AQ_COUNT(images); i++) {
        AQ_CLEANUP(reference_done) struct reference ref = { 0 };

        assert_int_equal(reference_parse(images[i].image, NULL, &ref, NULL), 0);
        assert_row(image_registries_has_mirror(&settings, &ref) == images[i].has_mirror
                       && image_registries_may_lack_tls(&settings, &ref) == images[i].may_lack_tls,
                   "%s", images[i].image);
    }
    settings_done(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),        cmocka_unit_test(test_registries),
        cmocka_unit_test(test_no_registries), cmocka_unit_test(test_where_they_are),
        cmocka_unit_test(test_one_image),
    };

    return cmocka_run_group_tests_name("agent/image_lists", tests, NULL, NULL);
}
