/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins in their processes: what they offer, and every way in which they misbehave. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "accelhost/gpu_variables.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

struct scene {
    uv_loop_t loop;
    char folder[64];
    struct accel_settings settings;
    struct accel *accel;
    int changes;
    /* of the latest attach */
    bool is_answered, is_attached;
    struct accel_attachment attachment;
    struct aq_error error;
};

static void on_changed(void *data)
{
    struct scene *s = data;

    s->changes++;
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    (void)snprintf(s->folder, sizeof(s->folder), "/tmp/aliquot-accel-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_int_equal(uv_loop_init(&s->loop), 0);
    s->settings.helper = getenv("ALIQUOT_ACCEL");
    s->settings.rescan_usec = USEC_PER_SEC / 10;
    s->settings.limit_usec = 60 * USEC_PER_SEC;
    *state = s;
    return 0;
}

static void stop(struct scene *s)
{
    accel_free(s->accel);
    s->accel = NULL;
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    accel_attachment_done(&s->attachment);
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    stop(s);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, s->folder, NULL), 0);
    free(s);
    return 0;
}

/* A file of that name in the directory; caller frees the path. */
static char *write_file(struct scene *s, const char *name, const char *text)
{
    char *path = aq_format("%s/%s", s->folder, name);

    assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
    return path;
}

/* Start with one plugin; 'config' may be NULL. */
static const struct accel_plugin *start(struct scene *s, const char *plugin, const char *config)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "%s%s%s%s%s", plugin[0] == '/' ? "" : getenv("ALIQUOT_TEST_PLUGINS"),
        plugin[0] == '/' ? "" : "/", plugin, config ? ":" : "", config ? config : "");
    struct aq_error err = { 0 };

    s->settings.plugins = (struct conf_list){ .items = &text, .count = 1 };
    if (accel_new(&s->loop, &s->settings, on_changed, s, &s->accel, &err) < 0)
        fail_msg("%s", err.text);
    s->settings.plugins = (struct conf_list){ .items = NULL };
    return accel_plugin(s->accel, 0);
}

static const struct accel_plugin *start_bad(struct scene *s, const char *mode)
{
    AQ_CLEANUP(aq_freep) char *config = write_file(s, mode, "");

    return start(s, "bad.so", config);
}

#define RUN_UNTIL(s, condition) \
    while (!(condition))        \
    assert_true(uv_run(&(s)->loop, UV_RUN_ONCE) || (condition))

/* ---- the example ---- */

static void on_attached(void *data, struct accel_attachment *attachment, const struct aq_error *err)
{
    struct scene *s = data;

    s->is_answered = true;
    s->is_attached = attachment != NULL;
    s->error = *err;
    if (attachment) {
        s->attachment = *attachment;
        *attachment = (struct accel_attachment){ .devices = NULL };
    }
}

static void attach(struct scene *s, const char *slot, const char *device)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    struct aq_error err = { 0 };

    accel_attachment_done(&s->attachment);
    s->is_answered = false;
    assert_int_equal(
        alloc_grant_add(&grant, slot_name_intern("cpu", 3), SLOT_COUNT, "0", 1, AMOUNT_ONE, NULL),
        0);
    assert_int_equal(alloc_grant_add(&grant, slot_name_intern(slot, strlen(slot)), SLOT_COUNT,
                                     device, strlen(device), AMOUNT_ONE, NULL),
                     0);
    if (accel_attach(s->accel, &grant, on_attached, s, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_false(s->is_answered);
    RUN_UNTIL(s, s->is_answered);
}

static void test_example(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(aq_freep) char *folder = aq_format("%s/dev", s->folder);
    AQ_CLEANUP(aq_freep) char *first = NULL;
    AQ_CLEANUP(aq_freep) char *second = NULL;
    const struct accel_plugin *plugin;

    assert_int_equal(fs_mkdirs(folder, 0700, NULL), 0);
    first = write_file(s, "dev/example0", "");
    assert_int_equal(setenv("ALIQUOT_ACCEL_ROOT", s->folder, 1), 0);
    plugin = start(s, getenv("ALIQUOT_EXAMPLE_PLUGIN"), NULL);
    assert_null(plugin->error);
    assert_string_equal(plugin->key, "example");
    assert_string_equal(plugin->version, "1.0");
    assert_int_equal(plugin->slot_count, 1);
    assert_int_equal(plugin->device_count, 1);
    assert_string_equal(plugin->devices[0].id, "0");
    assert_int_equal(plugin->devices[0].amount, AMOUNT_ONE);
    assert_int_equal(s->changes, 0);

    /* one comes, one goes */
    second = write_file(s, "dev/example7", "");
    RUN_UNTIL(s, s->changes == 1);
    plugin = accel_plugin(s->accel, 0);
    assert_int_equal(plugin->device_count, 2);
    assert_string_equal(plugin->devices[1].id, "7");
    assert_int_equal(unlink(first), 0);
    RUN_UNTIL(s, s->changes == 2);
    plugin = accel_plugin(s->accel, 0);
    assert_int_equal(plugin->device_count, 2);
    assert_string_equal(plugin->devices[0].id, "7");
    assert_string_equal(plugin->devices[1].id, "0");
    assert_int_equal(plugin->devices[1].status, ACCEL_OFFLINE);
    assert_string_equal(plugin->devices[1].status_text, "missing");

    attach(s, "example.device", "7");
    assert_true(s->is_attached);
    assert_int_equal(s->attachment.device_count, 1);
    assert_string_equal(s->attachment.devices[0].source, "/dev/example7");
    assert_string_equal(s->attachment.devices[0].target, "/dev/example7");
    assert_true(s->attachment.devices[0].may_write && !s->attachment.devices[0].may_mknod);
    assert_int_equal(s->attachment.part_count, 1);
    assert_string_equal(s->attachment.parts[0].kind, "example");
    assert_int_equal(s->attachment.parts[0].memory_bytes, 1 << 30);
    assert_int_equal(unsetenv("ALIQUOT_ACCEL_ROOT"), 0);
}

static void test_without_accelerators(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    struct aq_error err = { 0 };

    assert_int_equal(accel_new(&s->loop, &s->settings, on_changed, s, &s->accel, &err), 0);
    assert_null(accel_plugin(s->accel, 0));
    assert_int_equal(
        alloc_grant_add(&grant, slot_name_intern("mem", 3), SLOT_BYTES, "root", 4, 1, NULL), 0);
    assert_false(accel_is_needed(&grant));
    assert_int_equal(alloc_grant_add(&grant, slot_name_intern("cuda.device", 11), SLOT_COUNT, "x",
                                     1, AMOUNT_ONE, NULL),
                     0);
    assert_true(accel_is_needed(&grant));
    assert_int_equal(accel_attach(s->accel, &grant, on_attached, s, NULL, &err), -ENODEV);
    assert_string_equal(err.kind, "accelerator-failed");
}

static void test_variables(void **state)
{
    struct accel_part parts[] = {
        { .kind = "cuda", .model = "H100", .memory_bytes = UINT64_C(4) << 30 },
        { .kind = "npu", .memory_bytes = 1 },
        { .kind = "cuda", .model = "A100", .memory_bytes = UINT64_C(1536) << 20 },
    };
    struct accel_attachment attachment = { .parts = parts, .part_count = AQ_COUNT(parts) };
    static const struct text_pair expected[] = {
        { "GPU_TYPE", "cuda" },
        { "GPU_MODEL_NAME", "H100" },
        { "GPU_CONFIG", "0:4g,1:1536m" },
        { "TF_GPU_MEMORY_ALLOC", "0:4096,1:1536" },
        { "GPU_COUNT", "2" },
        { "N_GPUS", "2" },
    };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct text_pair made[GPU_VARIABLES_MAX];

    (void)state;
    assert_int_equal(gpu_variables_make(&attachment, &arena, made), AQ_COUNT(expected));
    for (size_t i = 0; i < AQ_COUNT(expected); i++) {
        assert_string_equal(made[i].key, expected[i].key);
        assert_string_equal(made[i].value, expected[i].value);
    }
    attachment.part_count = 0;
    assert_int_equal(gpu_variables_make(&attachment, &arena, made), 2);
    assert_string_equal(made[0].key, "GPU_COUNT");
    assert_string_equal(made[0].value, "0");
    assert_string_equal(made[1].key, "N_GPUS");
}

/* ---- what cannot be ---- */

static const struct {
    const char *plugin, *mode, *why;
} rejected[] = {
    { "old_abi.so", NULL, "is made for version 2 of the plugin interface" },
    { "no_calls.so", NULL, "lacks one of open, close" },
    { "no_symbol.so", NULL, "has no symbol 'aq_accelerator'" },
    { "missing.so", NULL, "cannot load it" },
    { "bad.so", "crash-open", "has crashed: Segmentation fault" },
    { "bad.so", "exit-open", "has ended with status 7" },
    { "bad.so", "fail-open", "bad.toml:3: no such key" },
    { "bad.so", "crash-describe", "has crashed: Segmentation fault" },
    { "bad.so", "garbage-describe", "something that is no answer" },
    { "bad.so", "endless-describe", "answers without an end" },
    { "bad.so", "unasked-describe", "answers what it was not asked" },
    { "bad.so", "fail-describe", "Input/output error" },
    { "bad.so", "no-identity", "key is missing" },
    { "bad.so", "two-identities", "no answer" },
    { "bad.so", "bad-key", "key must be 1 to 16 of" },
    { "bad.so", "cpu-key", "neither cpu nor mem" },
    { "bad.so", "foreign-slot", "slot 'cuda.device': name does not begin with" },
    { "bad.so", "bad-slot", "slot 'bad.x y': name is no slot name" },
    { "bad.so", "bad-type", "slot 'bad.device': type is out of range" },
    { "bad.so", "slot-twice", "slot 'bad.device': name is there twice" },
    { "bad.so", "bad-id", "device 'a:b': id must be" },
    { "bad.so", "no-id", "device '': id is missing" },
    { "bad.so", "unknown-slot", "device 'one': slot is none" },
    { "bad.so", "negative", "device 'one': amount is out of range" },
    { "bad.so", "fraction", "device 'one': amount is a fraction" },
    { "bad.so", "whole-quantum", "device 'one': quantum only goes with a slot that has one" },
    { "bad.so", "much-quantum", "device 'one': quantum is out of range" },
    { "bad.so", "duplicate", "device 'one' is there twice under bad.device" },
    { "bad.so", "too-many", "devices has too many elements" },
};

static void test_refused(void **state)
{
    struct scene *s = *state;

    for (size_t i = 0; i < AQ_COUNT(rejected); i++) {
        const struct accel_plugin *plugin = rejected[i].mode ? start_bad(s, rejected[i].mode)
                                                             : start(s, rejected[i].plugin, NULL);

        assert_row(plugin->error && strstr(plugin->error, rejected[i].why), "%s %s: %s",
                   rejected[i].plugin, rejected[i].mode ? rejected[i].mode : "",
                   plugin->error ? plugin->error : "accepted");
        assert_row(plugin->device_count == 0, "%s", rejected[i].mode ? rejected[i].mode : "");
        stop(s);
    }
}

static void test_hangs(void **state)
{
    struct scene *s = *state;
    const struct accel_plugin *plugin;

    s->settings.limit_usec = USEC_PER_SEC;
    plugin = start_bad(s, "hang-open");
    assert_non_null(strstr(plugin->error, "did not answer within 1000 ms"));
    stop(s);
    plugin = start_bad(s, "hang-describe");
    assert_non_null(strstr(plugin->error, "did not answer within 1000 ms"));
}

static void test_strange_but_harmless(void **state)
{
    struct scene *s = *state;
    const struct accel_plugin *plugin = start_bad(s, "bad-text");

    assert_null(plugin->error);
    assert_int_equal(plugin->device_count, 1);
    assert_null(strchr(plugin->human_name, 1));
    stop(s);
    plugin = start_bad(s, "thousands");
    assert_null(plugin->error);
    assert_int_equal(plugin->device_count, 4000);
}

static const struct {
    const char *mode, *why; /* NULL = it works */
} attached[] = {
    { "fine", NULL },
    { "crash-attach", "accelerator plugin 'bad.so' has crashed: Segmentation fault" },
    { "exit-attach", "has ended with status 7" },
    { "garbage-attach", "no answer" },
    { "fail-attach", "device one is on fire" },
    { "bad-path", "'/dev/../etc/shadow': name or value is not an absolute path" },
    { "bad-variable", "'A=B': name is not of letters" },
    { "bad-kind", "kind is out of range" },
};

static void test_attach(void **state)
{
    struct scene *s = *state;

    for (size_t i = 0; i < AQ_COUNT(attached); i++) {
        (void)start_bad(s, attached[i].mode);
        attach(s, "bad.device", "one");
        assert_row(s->is_attached == !attached[i].why, "%s: %s", attached[i].mode, s->error.text);
        if (attached[i].why) {
            assert_row(strstr(s->error.text, attached[i].why), "%s: %s", attached[i].mode,
                       s->error.text);
            assert_string_equal(s->error.kind, "accelerator-failed");
        } else {
            assert_string_equal(s->attachment.devices[0].source, "/dev/bad0");
            assert_string_equal(s->attachment.environ[0].value, "1?2");
        }
        /* whatever it did, the next one is served by a process that lives */
        if (!attached[i].why || strstr(attached[i].mode, "crash"))
            attach(s, "bad.device", "one");
        stop(s);
    }
}

/* ---- measuring ---- */

/* Ask once, then wait for the first answer. */
static const struct accel_metric *measure(struct scene *s, const struct accel_target *target,
                                          size_t *ret_count)
{
    const struct accel_metric *items;
    int64_t at = 0;

    accel_measure(s->accel, target, target ? 1 : 0);
    (void)accel_metrics(s->accel, 0, ret_count, &at);
    assert_int_equal(at, 0); /* never from within the call */
    RUN_UNTIL(s, ((items = accel_metrics(s->accel, 0, ret_count, &at)), at != 0));
    return items;
}

static void test_measure(void **state)
{
    struct scene *s = *state;
    const struct accel_metric *items;
    size_t count;

    (void)start_bad(s, "fine");
    items = measure(s, NULL, &count);
    assert_int_equal(count, 1);
    assert_string_equal(items[0].key, "bad_util");
    assert_string_equal(items[0].device, "one");
    assert_true(items[0].value == 5 && items[0].capacity == 100);
    assert_false(items[0].is_of_kernel);
}

static void test_measure_target(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    const int32_t pids[] = { 1, 2 };
    struct accel_target target = {
        .kernel_id = uuid_random(), .grant = &grant, .pids = pids, .pid_count = 2
    };
    const struct accel_metric *items;
    size_t count;

    (void)start_bad(s, "measure-target");
    assert_int_equal(alloc_grant_add(&grant, slot_name_intern("bad.device", 10), SLOT_COUNT, "one",
                                     3, AMOUNT_ONE, NULL),
                     0);
    items = measure(s, &target, &count);
    assert_int_equal(count, 1); /* that of a target that was not asked for is left out */
    assert_true(items[0].is_of_kernel && uuid_equals(&items[0].kernel_id, &target.kernel_id));
    assert_true(items[0].value == 2); /* of its processes */
}

/* What cannot be used is left out; the plugin goes on. */
static void test_useless_metrics(void **state)
{
    static const char *const modes[] = { "nan", "foreign-metric" };
    struct scene *s = *state;
    size_t count;

    for (size_t i = 0; i < AQ_COUNT(modes); i++) {
        const struct accel_plugin *plugin = start_bad(s, modes[i]);

        (void)measure(s, NULL, &count);
        assert_row(count == 0, "%s", modes[i]);
        assert_row(plugin->error == NULL, "%s: %s", modes[i], plugin->error);
        stop(s);
    }
}

/* Clients of Backend.AI read amounts of bytes as integers. */
static void test_parts_of_bytes(void **state)
{
    struct scene *s = *state;
    const struct accel_metric *items;
    size_t count;

    (void)start_bad(s, "bytes");
    items = measure(s, NULL, &count);
    assert_int_equal(count, 1);
    assert_true(items[0].value == 6 && items[0].capacity == 100);
}

/* A plugin that hangs is ended after its time limit, and its attachments work again. */
static void test_hanging_measure(void **state)
{
    struct scene *s = *state;
    const struct accel_plugin *plugin;

    s->settings.limit_usec = USEC_PER_SEC;
    plugin = start_bad(s, "hang-measure");
    accel_measure(s->accel, NULL, 0);
    accel_measure(s->accel, NULL, 0); /* is not asked twice */
    attach(s, "bad.device", "one");
    assert_true(s->is_attached);
    RUN_UNTIL(s, plugin->error == NULL);
}

static void test_hanging_attach(void **state)
{
    struct scene *s = *state;

    s->settings.limit_usec = 2 * USEC_PER_SEC;
    assert_null(start_bad(s, "hang-attach")->error);
    attach(s, "bad.device", "one");
    assert_false(s->is_attached);
    assert_non_null(strstr(s->error.text, "did not answer within 2000 ms"));
}

/* A crash is made good by the next process, and nothing was ever offline. */
static void test_one_crash(void **state)
{
    struct scene *s = *state;
    const struct accel_plugin *plugin = start_bad(s, "crash-later");

    assert_non_null(strstr(plugin->error, "has crashed: Aborted"));
    RUN_UNTIL(s, !accel_plugin(s->accel, 0)->error);
    plugin = accel_plugin(s->accel, 0);
    assert_int_equal(plugin->device_count, 1);
    assert_int_equal(plugin->devices[0].status, ACCEL_HEALTHY);
}

static void test_vanishing(void **state)
{
    struct scene *s = *state;

    const struct accel_device *devices;

    assert_int_equal(start_bad(s, "vanish")->device_count, 2);
    RUN_UNTIL(s, s->changes);
    devices = accel_plugin(s->accel, 0)->devices;
    assert_int_equal(accel_plugin(s->accel, 0)->device_count, 2);
    assert_int_equal(devices[0].status, ACCEL_HEALTHY);
    assert_string_equal(devices[1].id, "two");
    assert_int_equal(devices[1].status, ACCEL_OFFLINE);
    assert_string_equal(devices[1].status_text, "missing");
}

/* Two plugins with one key: the second is rejected and named. */
static void test_same_key(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(aq_freep) char *config = write_file(s, "fine", "");
    AQ_CLEANUP(aq_freep) char *text = aq_format("%s/bad.so:%s", getenv("ALIQUOT_TEST_PLUGINS"),
                                                config);
    char *both[] = { text, text };
    struct aq_error err = { 0 };
    const struct accel_plugin *a, *b;

    s->settings.plugins = (struct conf_list){ .items = both, .count = 2 };
    assert_int_equal(accel_new(&s->loop, &s->settings, on_changed, s, &s->accel, &err), 0);
    a = accel_plugin(s->accel, 0);
    b = accel_plugin(s->accel, 1);
    assert_true(!a->error != !b->error);
    assert_int_equal(a->device_count + b->device_count, 1);
    assert_non_null(strstr(a->error ? a->error : b->error, "has the key 'bad', which plugin"));
}

static void test_unknown_plugin(void **state)
{
    struct scene *s = *state;
    char name[] = "no-such";
    char *names[] = { name };
    struct aq_error err = { 0 };

    s->settings.plugins = (struct conf_list){ .items = names, .count = 1 };
    assert_int_equal(accel_new(&s->loop, &s->settings, on_changed, s, &s->accel, &err), -EINVAL);
    assert_string_equal(err.field, "accelerators.plugins");
    assert_non_null(strstr(err.text, "there is no plugin 'no-such'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_example, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_accelerators, set_up, tear_down),
        cmocka_unit_test(test_variables),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hangs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_strange_but_harmless, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_attach, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_measure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_measure_target, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_useless_metrics, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_parts_of_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hanging_measure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hanging_attach, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_crash, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_vanishing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_same_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_plugin, set_up, tear_down),
    };

    (void)signal(SIGPIPE, SIG_IGN); /* as the agent does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
