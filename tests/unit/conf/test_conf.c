/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from files, drop-ins and environment: what is taken, what is refused and how. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "conf/conf.h"

struct settings {
    char *name, *folder;
    int64_t count, wait_usec, kept_usec, size;
    bool flag;
    struct conf_listen listen;
};

static const struct conf_item items[] = {
    { "", "name", CONF_STR, offsetof(struct settings, name), "unnamed", 0, 0, 0, "a name" },
    { "", "state-dir", CONF_PATH, offsetof(struct settings, folder), NULL, 0, 0, 0, "a folder" },
    { "limits", "count", CONF_INT, offsetof(struct settings, count), "3", 1, 10, 0, "how many" },
    { "limits", "wait", CONF_DURATION, offsetof(struct settings, wait_usec), "3s", USEC_PER_SEC,
      60 * USEC_PER_SEC, 0, "how long" },
    { "limits", "kept", CONF_DURATION, offsetof(struct settings, kept_usec), "forever",
      60 * USEC_PER_SEC, 3600 * USEC_PER_SEC, CONF_OR_FOREVER, "how long, too" },
    { "limits.deep", "size", CONF_SIZE, offsetof(struct settings, size), "1m", 0, 0, 0, "how big" },
    { "limits.deep", "flag", CONF_BOOL, offsetof(struct settings, flag), NULL, 0, 0, 0, "whether" },
    { "net", "listen", CONF_LISTEN, offsetof(struct settings, listen), NULL, 0, 0, 0, "where" },
    CONF_TABLE_END,
};

static const struct {
    const char *text;
    const char *why; /* NULL = accepted; else a part of the message */
} texts[] = {
    { "", NULL },
    { "name = \"x\"\nstate-dir = \"/tmp\"", NULL },
    { "[limits]\ncount = 10\nwait = 60", NULL },
    { "[limits]\nwait = \"1m\"\n[limits.deep]\nsize = \"2 GiB\"\nflag = true", NULL },
    { "limits.deep.size = 7", NULL },
    { "[net]\nlisten = \"[::1]:80\"", NULL },
    { "[limits]\ncuont = 1", "t.toml:2: unknown key 'limits.cuont', did you mean 'limits.count'?" },
    { "[limtis]\n", "t.toml:1: unknown section 'limtis', did you mean 'limits'?" },
    { "zzzzzzzz = 1", "t.toml:1: unknown key 'zzzzzzzz'" },
    { "count = 1", "unknown key 'count'" },
    { "[limits]\ncount = 11", "t.toml:2: limits.count: 11 is outside 1..10" },
    { "[limits]\ncount = -1", "outside" },
    { "[limits]\ncount = \"3\"", "limits.count wants a whole number" },
    { "[limits]\ncount = 1.5", "wants a whole number" },
    { "[limits]\ncount = [1]", "wants a whole number" },
    { "[limits]\nwait = 61", "61 is outside 1..60 seconds" },
    { "[limits]\nwait = \"soon\"", "'soon' is not a duration" },
    { "[limits]\nwait = \"forever\"", "'forever' is not a duration" },
    { "[limits]\nkept = \"forever\"", NULL },
    { "[limits]\nkept = 0", NULL },
    { "[limits]\nkept = \"1h\"", NULL },
    { "[limits]\nkept = \"2h\"", "2h is outside 60..3600 seconds or \"forever\"" },
    { "[limits]\nkept = 59", "59 is outside 60..3600 seconds or \"forever\"" },
    { "[limits]\nkept = \"ever\"", "a number of seconds or \"forever\"" },
    { "[limits.deep]\nsize = \"2x\"", "is not a size" },
    { "[limits.deep]\nsize = \"9999999999g\"", "is not a size" },
    { "[limits.deep]\nsize = -1", "is not a size" },
    { "[limits.deep]\nflag = 1", "wants true or false" },
    { "name = 3", "name wants text in quotes" },
    { "name = \"a\\u0000b\"", "NUL" },
    { "state-dir = \"relative\"", "is not an absolute path" },
    { "[net]\nlisten = \"::1:80\"", "is not an address" },
    { "[net]\nlisten = \"host\"", "needs a port" },
    { "[net]\nlisten = \"host:0\"", "needs a port" },
    { "[net]\nlisten = \"host:65536\"", "needs a port" },
    { "name = \"x\"\nname = \"y\"", "t.toml:2" },
    { "name = ", "t.toml:1" },
    { "\xff\xfe", "t.toml:1" },
    { "[:", "t.toml" },
    { "# h\xc3\xa4\nname = \"h\xc3\xa4\\\" \xc3\xa4\" # \xc3\xa4", NULL },
    { "\n\xc3\xa4 = 1", "t.toml:2" },
    { "name = \"\"\"\\\n \xc3\xa4\"\"\"", NULL },
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        struct settings got = { .name = NULL };
        struct aq_error err = { 0 };
        int r = conf_load_text(items, "t.toml", texts[i].text, strlen(texts[i].text), &got, &err);

        if (!texts[i].why) {
            assert_row(r == 0, "%s: %s", texts[i].text, err.text);
        } else {
            assert_row(r == -EINVAL, "%s", texts[i].text);
            assert_row(strstr(err.text, texts[i].why), "%s: %s", texts[i].text, err.text);
            assert_row(!got.name && !got.listen.host, "%s", texts[i].text);
        }
        conf_done(items, &got);
    }
}

static void write_file(const char *folder, const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);

    assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void test_order_of_sources(void **state)
{
    char folder[] = "/tmp/aliquot-conf-XXXXXX";
    AQ_CLEANUP(aq_freep) char *file = NULL;
    AQ_CLEANUP(aq_freep) char *drop_ins = NULL;
    struct settings got = { .name = NULL };
    struct aq_error err = { 0 };

    (void)state;
    assert_non_null(mkdtemp(folder));
    file = aq_format("%s/agent.toml", folder);
    drop_ins = aq_format("%s/agent.conf.d", folder);
    assert_int_equal(conf_load(items, file, false, &got, &err), -ENOENT);
    assert_int_equal(conf_load(items, file, true, &got, &err), 0);
    assert_string_equal(got.name, "unnamed");
    assert_int_equal(got.count, 3);
    assert_int_equal(got.kept_usec, 0);

    write_file(folder, "agent.toml", "name = \"file\"\n[limits]\ncount = 4\nwait = 5\n");
    assert_int_equal(fs_mkdirs(drop_ins, 0700, NULL), 0);
    write_file(drop_ins, "10-a.toml", "[limits]\ncount = 5\n");
    write_file(drop_ins, "20-b.toml", "[limits]\ncount = 6\n");
    write_file(drop_ins, "30-c.conf", "nonsense");
    assert_int_equal(conf_load(items, file, false, &got, &err), 0);
    assert_string_equal(got.name, "file");
    assert_int_equal(got.count, 6);
    assert_int_equal(got.wait_usec, 5 * USEC_PER_SEC);

    assert_int_equal(setenv("ALIQUOT_LIMITS_COUNT", "7", 1), 0);
    assert_int_equal(setenv("ALIQUOT_NET_LISTEN", ":81", 1), 0);
    assert_int_equal(conf_load(items, file, false, &got, &err), 0);
    assert_int_equal(got.count, 7);
    assert_string_equal(got.listen.host, "0.0.0.0");
    assert_int_equal(got.listen.port, 81);
    assert_int_equal(setenv("ALIQUOT_LIMITS_COUNT", "many", 1), 0);
    assert_int_equal(conf_load(items, file, false, &got, &err), -EINVAL);
    assert_non_null(strstr(err.text, "environment variable ALIQUOT_LIMITS_COUNT"));
    assert_string_equal(err.field, "limits.count");
    assert_int_equal(unsetenv("ALIQUOT_LIMITS_COUNT"), 0);
    assert_int_equal(unsetenv("ALIQUOT_NET_LISTEN"), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder, NULL), 0);
}

static void test_required(void **state)
{
    static const struct conf_item must[] = {
        { "net", "listen", CONF_LISTEN, offsetof(struct settings, listen), NULL, 0, 0,
          CONF_REQUIRED, "where" },
        CONF_TABLE_END,
    };
    struct settings got = { .name = NULL };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(conf_load_text(must, "t", "", 0, &got, &err), -EINVAL);
    assert_string_equal(err.field, "net.listen");
}

/* What the sample shows, once its comment signs are gone, must load. */
static void test_sample_is_valid(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sample = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf plain = STRBUF_INIT;
    struct settings got = { .name = NULL };
    struct aq_error err = { 0 };
    static const struct conf_item shown[] = {
        { "", "name", CONF_STR, offsetof(struct settings, name), "n", 0, 0, 0, "a name" },
        { "a", "count", CONF_INT, offsetof(struct settings, count), "3", 0, 0, 0, "how many" },
        { "a", "wait", CONF_DURATION, offsetof(struct settings, wait_usec), "3s", 0, 0, 0, "w" },
        { "a", "flag", CONF_BOOL, offsetof(struct settings, flag), NULL, 0, 0, 0, "whether" },
        CONF_TABLE_END,
    };

    (void)state;
    conf_write_sample(shown, &sample);
    for (const char *at = sample.data; *at; at++) {
        if (*at != '#' || at[1] == ' ')
            strbuf_addc(&plain, *at);
    }
    assert_int_equal(conf_load_text(shown, "sample", plain.data, plain.len, &got, &err), 0);
    assert_int_equal(got.count, 3);
    assert_int_equal(got.wait_usec, 3 * USEC_PER_SEC);
    conf_done(shown, &got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_order_of_sources),
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_sample_is_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
