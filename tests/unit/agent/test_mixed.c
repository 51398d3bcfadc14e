/* SPDX-License-Identifier: Apache-2.0 */
/* One node whose devices differ in how they are given: whole, in shares, in slices. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include "agent/resources/resources.h"
#include "base/clock.h"
#include "base/fs.h"

#define GPU(id, rest) \
    "[[devices]]\nmother_uuid = \"" id "\"\nsubproc_count = 80\nmemory_size = \"8g\"\n" rest "\n"
#define FOUR_GPUS                                                 \
    GPU("gpu-0", "model_name = \"GPU\"")                          \
    GPU("gpu-1", "model_name = \"GPU\"\nnuma_node = 1")           \
    GPU("gpu-2", "model_name = \"MIG-1g\"\nis_mig_device = true") \
    GPU("gpu-3", "model_name = \"GPU\"")

#define MIXED                                                                             \
    "allocation_mode = \"discrete\"\nunit_mem = 0\nunit_proc = 0\nquantum_size = 0.1\n"   \
    "[[device]]\nid = \"gpu-1\"\nallocation_mode = \"fractional\"\nquantum_size = 0.25\n" \
    "[[device]]\nid = \"gpu-[3-9]\"\nallocation_mode = \"fractional\"\n" FOUR_GPUS

struct scene {
    uv_loop_t loop;
    char folder[64];
    char *config;
    struct settings settings;
    struct accel *accel;
    struct resources resources;
};

static void on_changed(void *data)
{
    (void)data;
}

static int set_up(void **state)
{
    static char mode[] = "exclusive", affinity[] = "interleaved";
    struct scene *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    (void)snprintf(s->folder, sizeof(s->folder), "/tmp/aliquot-mixed-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_int_equal(uv_loop_init(&s->loop), 0);
    s->settings = (struct settings){ .accel.helper = getenv("ALIQUOT_ACCEL"),
                                     .offer_mode = mode,
                                     .affinity = affinity,
                                     .cpus = 8,
                                     .cpu_factor = 1,
                                     .memory_bytes = INT64_C(1) << 30,
                                     .memory_factor = 1,
                                     .accel.rescan_usec = 3600 * USEC_PER_SEC,
                                     .accel.limit_usec = 60 * USEC_PER_SEC };
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    resources_done(&s->resources);
    accel_free(s->accel);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, s->folder, NULL), 0);
    free(s->config);
    free(s);
    return 0;
}

/* The mock plugin with these settings. */
static const struct accel_plugin *start(struct scene *s, const char *toml)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;
    struct aq_error err = { 0 };

    s->config = aq_format("%s/mock.toml", s->folder);
    assert_int_equal(fs_write_atomic(AT_FDCWD, s->config, toml, strlen(toml), 0600, NULL), 0);
    text = aq_format("%s:%s", getenv("ALIQUOT_MOCK_PLUGIN"), s->config);
    s->settings.accel.plugins = (struct conf_list){ .items = &text, .count = 1 };
    if (accel_new(&s->loop, &s->settings.accel, on_changed, s, &s->accel, &err) < 0)
        fail_msg("%s", err.text);
    s->settings.accel.plugins = (struct conf_list){ .items = NULL };
    return accel_plugin(s->accel, 0);
}

static int look(struct scene *s, struct aq_error *err)
{
    return resources_init(&s->resources, &s->settings, s->accel, NULL, false, err);
}

/* "slot/device:amount" of what was granted, or "!kind". */
static const char *ask(struct scene *s, const char *slot, const char *amount)
{
    static char text[256];
    AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { 0 };
    const struct alloc_request request = { .slots = &slots };
    struct aq_error err = { 0 };
    size_t len = 0;
    int64_t micro;

    assert_int_equal(
        slot_amount_parse(amount, strlen(amount), SLOT_COUNT, false, slot, &micro, NULL), 0);
    assert_int_equal(slots_set(&slots, slot, micro), 0);
    if (alloc_map_allocate(s->resources.map, &request, &grant, &err) < 0) {
        (void)snprintf(text, sizeof(text), "!%s", err.kind);
        return text;
    }
    for (size_t i = 0; i < grant.count; i++) {
        char part[AMOUNT_TEXT_MAX];

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s:%s", len ? " " : "",
                                grant.items[i].device_id,
                                slot_amount_format(grant.items[i].amount, SLOT_COUNT, part));
    }
    return text;
}

static void test_each_its_own_way(void **state)
{
    struct scene *s = *state;
    const struct accel_plugin *plugin = start(s, MIXED);
    struct aq_error err = { 0 };

    assert_null(plugin->error);
    if (look(s, &err) < 0)
        fail_msg("%s", err.text);
    assert_non_null(strstr(s->resources.slots_json, "\"cuda.device\":[\"count\",\"1\"]"));
    assert_non_null(strstr(s->resources.slots_json, "\"cuda.shares\":[\"count\",\"2\"]"));
    assert_non_null(strstr(s->resources.slots_json, "\"cuda.device:1g-mig\":[\"unique\",\"1\"]"));
    assert_non_null(strstr(s->resources.devices_json, "{\"id\":\"gpu-1\",\"slot\":\"cuda.shares\","
                                                      "\"amount\":\"1\",\"quantum\":\"0.25\""));
    assert_non_null(strstr(s->resources.devices_json, "{\"id\":\"gpu-3\",\"slot\":\"cuda.shares\","
                                                      "\"amount\":\"1\",\"quantum\":\"0.1\""));
    assert_non_null(strstr(s->resources.devices_json, "{\"id\":\"gpu-0\",\"slot\":\"cuda.device\","
                                                      "\"amount\":\"1\",\"model\""));

    assert_string_equal(ask(s, "cuda.device", "1"), "gpu-0:1");
    assert_string_equal(ask(s, "cuda.device", "1"), "!insufficient-resource");
    assert_string_equal(ask(s, "cuda.shares", "0.25"), "gpu-1:0.25");
    assert_string_equal(ask(s, "cuda.shares", "0.3"), "gpu-3:0.3");
    assert_string_equal(ask(s, "cuda.shares", "0.5"), "gpu-1:0.5");
    assert_string_equal(ask(s, "cuda.shares", "0.5"), "gpu-3:0.5");
    assert_string_equal(ask(s, "cuda.shares", "0.15"), "!not-multiple-of-quantum");
    assert_string_equal(ask(s, "cuda.device:1g-mig", "1"), "MIG-gpu-2/2/0:1");
}

static void test_reserved_memory(void **state)
{
    struct scene *s = *state;
    char one[] = "cuda/gpu-1=1g", all[] = "cuda/*=2g";
    char *texts[] = { one, all };
    struct aq_error err = { 0 };

    (void)start(s, MIXED);
    s->settings.offer_reserved = (struct conf_list){ .items = texts, .count = 2 };
    if (look(s, &err) < 0)
        fail_msg("%s", err.text);
    /* 7 of 8 GiB are three quarters and a rest; 6 of 8 GiB seven tenths and a rest */
    assert_non_null(strstr(s->resources.slots_json, "\"cuda.shares\":[\"count\",\"1.45\"]"));
    assert_non_null(strstr(s->resources.slots_json, "\"cuda.device\":[\"count\",\"1\"]"));
    assert_non_null(strstr(s->resources.devices_json, "\"amount\":\"0.75\",\"reserved\":\"0.25\""));
    assert_non_null(strstr(s->resources.devices_json, "\"amount\":\"0.7\",\"reserved\":\"0.3\""));
}

static void test_refused_reserves(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "cuda/gpu-0=1g", "is given whole" },
        { "cuda/MIG-gpu-2/2/0=1g", "is given whole" },
        { "cuda/gpu-1=8g", "reserve less" },
        { "cuda/gpu-1=7g", "less than a quantum left" },
        { "cuda/gpu-1", "must be KIND/ID=MEMORY" },
        { "cuda/gpu-1=", "must be KIND/ID=MEMORY" },
        { "cuda/gpu-1=-1g", "must be KIND/ID=MEMORY" },
        { "cuda/gpu-1=0", "must be KIND/ID=MEMORY" },
        { "cuda/gpu-1=much", "must be KIND/ID=MEMORY" },
        { "gpu-1=1g", "must be KIND/ID=MEMORY" },
    };

    (void)start(s, MIXED);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_freep) char *text = strdup(rows[i].text);
        struct aq_error err = { 0 };

        s->settings.offer_reserved = (struct conf_list){ .items = &text, .count = 1 };
        assert_row(look(s, &err) == -EINVAL
                       && strcmp(err.field, "resource.reserved-device-memory") == 0
                       && strstr(err.text, rows[i].why),
                   "%s: %s", rows[i].text, err.text);
    }
}

static void test_masks(void **state)
{
    struct scene *s = *state;
    const struct accel_plugin *plugin = start(s, "device_mask = [\"gpu-0\", \"MIG-*\"]\n" MIXED);

    assert_null(plugin->error);
    assert_int_equal(plugin->device_count, 2);
    assert_string_equal(plugin->devices[0].id, "gpu-1");
    assert_string_equal(plugin->devices[1].id, "gpu-3");
}

/* The file, the key and what is wrong with it. */
static void test_refused_settings(void **state)
{
    static const struct {
        const char *toml, *key, *why;
    } rows[] = {
        { "allocation_mode = \"mig\"",
          "mock.toml: allocation_mode: ", "the driver's mode decides" },
        { "quantum_size = 0.125", "mock.toml: quantum_size: ", "whole hundredths" },
        { "quantum_size = 2", "mock.toml:1:", "quantum_size" },
        { "[[device]]\nid = \"gpu-0\"\nallocation_mode = \"half\"",
          "mock.toml: device[0].allocation_mode: ", "'half' is neither" },
        { "[[device]]\nid = \"gpu-0\"\nquantum_size = 0.005",
          "mock.toml:3:", "0.005 is outside 0.01..1" },
        { "[[device]]\nid = \"gpu-0\"\nquantum_size = 0.333",
          "mock.toml: device[0].quantum_size: ", "whole hundredths" },
        { "[[device]]\nid = \"gpu-0\"\nallocation_mode = \"discrete\"\nquantum_size = 0.5",
          "mock.toml: device[0].quantum_size: ", "given whole" },
        { "[[device]]\nid = \"gpu-0\"", "mock.toml: device[0].id: ", "changes nothing" },
        { "[[device]]\nid = \"g\"\nquantum_size = 0.5\n[[device]]\nid = \"g\"\nquantum_size = 0.2",
          "mock.toml: device[1].id: ", "the same id" },
        { "[[device]]\nid = \"gpu-0\"\nquantum = 0.5", "mock.toml:3:", "quantum" },
        { "[[device]]\nquantum_size = 0.5", "mock.toml: device[0]: id ", "is not set" },
        { "unit_mem = \"2q\"", "mock.toml:1:", "unit_mem" },
        { "device_mask = 3", "mock.toml:1:", "device_mask" },
        { "unit_mem = ", "mock.toml:1:", "" },
    };

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_freep) char *toml = aq_format("%s\n" FOUR_GPUS, rows[i].toml);
        const char *error;

        assert_int_equal(set_up(state), 0);
        error = start(*state, toml)->error;
        assert_row(error && strstr(error, rows[i].key) && strstr(error, rows[i].why), "%s: %s",
                   rows[i].toml, error ? error : "accepted");
        assert_int_equal(tear_down(state), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_its_own_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reserved_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused_reserves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_masks, set_up, tear_down),
        cmocka_unit_test(test_refused_settings),
    };

    (void)signal(SIGPIPE, SIG_IGN); /* as the agent does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
