/* SPDX-License-Identifier: Apache-2.0 */
/* Devices by their CDI names: what a specification says, and what cannot be. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "accelhost/cdi.h"
#include "base/fs.h"

static const char yaml[] = "cdiVersion: 0.6.0\n"
                           "kind: vendor.com/npu\n"
                           "containerEdits:\n"
                           "  env:\n"
                           "    - NPU_DRIVER=1.0\n"
                           "  mounts:\n"
                           "    - hostPath: /usr/lib/libnpu.so.1\n"
                           "      containerPath: /usr/lib64/libnpu.so.1\n"
                           "      options: [ro, nosuid, bind]\n"
                           "  hooks:\n"
                           "    - hookName: createContainer\n"
                           "      path: /usr/bin/hook\n"
                           "      args: [hook, update-ldcache, --folder, /usr/lib64]\n"
                           "      env: [DEBUG=1]\n"
                           "      timeout: 5\n"
                           "devices:\n"
                           "  - name: \"0\"\n"
                           "    containerEdits:\n"
                           "      deviceNodes:\n"
                           "        - path: /dev/npu0\n"
                           "        - path: /dev/accel0\n"
                           "          hostPath: /dev/accel/accel0\n"
                           "          permissions: rw\n"
                           "      additionalGids: [44]\n"
                           "  - name: all\n"
                           "    containerEdits:\n"
                           "      env: [\"NPU_ALL=a=b\"]\n";

static const char json[] =
    "{\"cdiVersion\": \"0.6.0\", \"kind\": \"vendor.com/npu\", \"devices\": [{\"name\": \"0\","
    " \"containerEdits\": {\"deviceNodes\": [{\"path\": \"/dev/other0\", \"permissions\": \"r\"}],"
    " \"additionalGids\": [45]}}]}";

static json_t *parse(const char *text, bool is_yaml)
{
    struct aq_error err = { 0 };
    json_t *spec = cdi_parse(text, strlen(text), is_yaml, &err);

    assert_row(spec, "%s", err.text);
    return spec;
}

static void test_yaml(void **state)
{
    struct accel_attachment to = { .devices = NULL };
    json_t *spec = parse(yaml, true);

    (void)state;
    assert_int_equal(cdi_apply(spec, "vendor.com/npu=0", true, &to, NULL), 0);
    assert_int_equal(to.device_count, 2);
    assert_string_equal(to.devices[0].source, "/dev/npu0");
    assert_string_equal(to.devices[0].target, "/dev/npu0");
    assert_true(to.devices[0].may_read && to.devices[0].may_write && to.devices[0].may_mknod);
    assert_string_equal(to.devices[1].source, "/dev/accel/accel0");
    assert_string_equal(to.devices[1].target, "/dev/accel0");
    assert_false(to.devices[1].may_mknod);
    assert_int_equal(to.mount_count, 1);
    assert_string_equal(to.mounts[0].source, "/usr/lib/libnpu.so.1");
    assert_string_equal(to.mounts[0].target, "/usr/lib64/libnpu.so.1");
    assert_false(to.mounts[0].may_write);
    assert_int_equal(to.environ_count, 1);
    assert_int_equal(to.group_count, 1);
    assert_int_equal(to.groups[0], 44);
    assert_int_equal(to.hook_count, 1);
    assert_string_equal(to.hooks[0].path, "/usr/bin/hook");
    assert_string_equal(to.hooks[0].args[3], "/usr/lib64");
    assert_null(to.hooks[0].args[4]);
    assert_string_equal(to.hooks[0].env[0], "DEBUG=1");
    assert_int_equal(to.hooks[0].timeout, 5);
    assert_int_equal(cdi_apply(spec, "vendor.com/npu=all", false, &to, NULL), 0);
    assert_int_equal(to.environ_count, 2);
    assert_string_equal(to.environ[1].key, "NPU_ALL");
    assert_string_equal(to.environ[1].value, "a=b");
    assert_int_equal(cdi_apply(spec, "vendor.com/npu=1", true, &to, NULL), -ENOENT);
    assert_int_equal(cdi_apply(spec, "vendor.com/gpu=0", true, &to, NULL), -ENOENT);
    assert_int_equal(cdi_apply(spec, "vendor.com/npu", true, &to, NULL), -ENOENT);
    accel_attachment_done(&to);
    json_decref(spec);
}

/* ---- what cannot be ---- */

static void test_texts(void **state)
{
    static const struct {
        const char *text;
        bool is_yaml;
        const char *why;
    } rows[] = {
        { "{\"kind\": 1", false, "line 1" },
        { "{\"kind\": 1, \"kind\": 2}", false, "duplicate" },
        { "", true, "empty" },
        { "kind: [a\n", true, "line" },
        { "kind: a\nkind: b\n", true, "line 2, column 1: a key is there twice" },
        { "a: &x 1\nb: *x\n", true, "alias" },
        { "? [a]\n: b\n", true, "a key is no text" },
        { "a: \"x\\0y\"\n", true, "zero byte" },
        { "--- a\n--- b\n", true, "second document" },
        { "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", true, "nested too deeply" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct aq_error err = { 0 };
        json_t *spec = cdi_parse(rows[i].text, strlen(rows[i].text), rows[i].is_yaml, &err);

        assert_row(!spec && strstr(err.text, rows[i].why), "%s: %s", rows[i].text, err.text);
    }
}

static void test_too_many_values(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    for (int i = 0; i <= CDI_VALUES_MAX; i++)
        strbuf_adds(&text, "- a\n");
    assert_null(cdi_parse(text.data, text.len, true, &err));
    assert_non_null(strstr(err.text, "too many values"));
}

static void test_edits(void **state)
{
    static const struct {
        const char *edits, *why;
    } rows[] = {
        { "{\"deviceNodes\": [{\"path\": \"dev/npu0\"}]}", "device node 'dev/npu0'" },
        { "{\"deviceNodes\": [{}]}", "device node ''" },
        { "{\"deviceNodes\": [{\"path\": \"/dev/npu0\", \"hostPath\": \"/dev/../etc/shadow\"}]}",
          "device node" },
        { "{\"deviceNodes\": [{\"path\": \"/dev/npu0\", \"permissions\": \"rx\"}]}",
          "device node" },
        { "{\"mounts\": [{\"hostPath\": \"/a/..\", \"containerPath\": \"/b\"}]}", "mount '/b'" },
        { "{\"mounts\": [{\"hostPath\": \"/a\"}]}", "mount ''" },
        { "{\"mounts\": [{\"hostPath\": \"/a\", \"containerPath\": \"/b\", \"type\": \"tmpfs\"}]}",
          "mount" },
        { "{\"env\": [\"A\"]}", "variable 'A'" },
        { "{\"env\": [\"=A\"]}", "variable" },
        { "{\"env\": [7]}", "variable" },
        { "{\"env\": [\"A=1\\n2\"]}", "variable" },
        { "{\"additionalGids\": [0]}", "additionalGids" },
        { "{\"additionalGids\": [\"4x\"]}", "additionalGids '4x'" },
        { "{\"hooks\": [{\"hookName\": \"poststop\", \"path\": \"/bin/true\"}]}",
          "a hook other than createContainer: 'poststop'" },
        { "{\"hooks\": [{\"path\": \"/bin/true\"}]}", "a hook other than createContainer: ''" },
        { "{\"hooks\": [{\"hookName\": \"createContainer\", \"path\": \"true\"}]}", "hook 'true'" },
        { "{\"hooks\": [{\"hookName\": \"createContainer\"}]}", "hook ''" },
        { "{\"hooks\": [{\"hookName\": \"createContainer\", \"path\": \"/bin/true\", \"args\": [1]}]}",
          "argument of a hook" },
        { "{\"hooks\": [{\"hookName\": \"createContainer\", \"path\": \"/bin/true\","
          " \"timeout\": \"5x\"}]}",
          "hook '/bin/true'" },
        { "{\"hooks\": [7]}", "a hook other than createContainer" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_freep) char *text = aq_format(
            "{\"kind\":\"a/b\",\"devices\":[{\"name\":\"x\",\"containerEdits\":%s}]}",
            rows[i].edits);
        struct accel_attachment to = { .devices = NULL };
        struct aq_error err = { 0 };
        json_t *spec = parse(text, false);

        assert_row(cdi_apply(spec, "a/b=x", true, &to, &err) == -EINVAL
                       && strstr(err.text, rows[i].why),
                   "%s: %s", rows[i].edits, err.text);
        accel_attachment_done(&to);
        json_decref(spec);
    }
}

/* ---- directories ---- */

static void write_file(const char *folder, const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);

    assert_int_equal(fs_write_quick(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void test_folders(void **state)
{
    char folder[] = "/tmp/aliquot-cdi-XXXXXX", none[] = "/tmp/aliquot-cdi-none";
    const char *names[] = { "vendor.com/npu=0", "vendor.com/npu=all" },
               *absent[] = { "vendor.com/npu=9" };
    struct accel_attachment to = { .cdi = names, .cdi_count = 2 };
    struct aq_error err = { 0 };
    AQ_CLEANUP(aq_freep) char *low = NULL;
    AQ_CLEANUP(aq_freep) char *high = NULL;
    char *paths[3];
    struct conf_list folders = { .items = paths, .count = 3 };

    (void)state;
    assert_non_null(mkdtemp(folder));
    low = aq_format("%s/etc", folder);
    high = aq_format("%s/run", folder);
    paths[0] = low;
    paths[1] = high;
    paths[2] = none;
    assert_int_equal(fs_mkdirs(low, 0700, NULL), 0);
    assert_int_equal(fs_mkdirs(high, 0700, NULL), 0);
    write_file(low, "npu.yaml", yaml);
    write_file(low, "broken.json", "{");
    write_file(low, "notes.txt", "nothing");
    write_file(high, "npu.json", json);
    assert_int_equal(cdi_resolve(&folders, true, &to, &err), 0);
    /* "0" is the later directory's, "all" the earlier one's with what its devices have in common */
    assert_int_equal(to.device_count, 1);
    assert_string_equal(to.devices[0].source, "/dev/other0");
    assert_int_equal(to.groups[0], 45);
    assert_int_equal(to.environ_count, 2);
    assert_string_equal(to.environ[0].key, "NPU_DRIVER");
    assert_int_equal(to.mount_count, 1);
    accel_attachment_done(&to);

    to = (struct accel_attachment){ .cdi = absent, .cdi_count = 1 };
    assert_int_equal(cdi_resolve(&folders, true, &to, &err), -ENOENT);
    assert_string_equal(err.field, "vendor.com/npu=9");
    assert_string_equal(err.kind, "accelerator-failed");
    accel_attachment_done(&to);

    to = (struct accel_attachment){ .cdi = names, .cdi_count = 2 };
    assert_int_equal(cdi_resolve(&folders, false, &to, &err), -EPERM);
    assert_string_equal(err.field, "accelerators.cdi-hooks");
    assert_non_null(strstr(err.text, "needs the hook '/usr/bin/hook'"));
    accel_attachment_done(&to);
    to = (struct accel_attachment){ .cdi = names, .cdi_count = 1 }; /* without hooks */
    assert_int_equal(cdi_resolve(&folders, false, &to, &err), 0);
    accel_attachment_done(&to);
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_too_many_values),
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_folders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
