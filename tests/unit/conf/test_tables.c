/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, pairs, exact fractions and arrays of tables as settings. */
#include "testing.h"

#include <errno.h>

#include "conf/conf.h"

struct device {
    char *id;
    int64_t memory_bytes;
    bool is_slice;
    struct conf_list tags;
};

struct look {
    char *name;
    char *unit;
    int64_t digits;
};

struct settings {
    int64_t quantum_micro;
    struct conf_list masks;
    struct conf_pairs attributes;
    struct conf_tables devices, looks;
};

static const struct conf_item device_items[] = {
    { "", "id", CONF_STR, offsetof(struct device, id), NULL, 0, 0, CONF_REQUIRED, "" },
    { "", "memory", CONF_SIZE, offsetof(struct device, memory_bytes), "1g", 0, 0, 0, "" },
    { "mig", "slice", CONF_BOOL, offsetof(struct device, is_slice), NULL, 0, 0, 0, "" },
    { "", "tags", CONF_LIST, offsetof(struct device, tags), NULL, 0, 0, 0, "" },
    CONF_TABLE_END,
};
static const struct conf_item look_items[] = {
    { "", "unit", CONF_STR, offsetof(struct look, unit), NULL, 0, 0, 0, "" },
    { "number", "digits", CONF_INT, offsetof(struct look, digits), NULL, 0, 9, 0, "" },
    CONF_TABLE_END,
};
static const struct conf_table device_table = { sizeof(struct device), device_items, false, false };
static const struct conf_table look_table = { sizeof(struct look), look_items, true, true };

static const struct conf_item items[] = {
    { "", "quantum", CONF_MICRO, offsetof(struct settings, quantum_micro), "0.1", 1, 1000000, 0,
      "" },
    { "", "masks", CONF_LIST, offsetof(struct settings, masks), NULL, 0, 0, 0, "" },
    { "", "attributes", CONF_PAIRS, offsetof(struct settings, attributes), NULL, 0, 0, 0, "" },
    { "", "devices", CONF_TABLES, offsetof(struct settings, devices), NULL, 0, 0, 0, "",
      &device_table },
    { "", "formats", CONF_TABLES, offsetof(struct settings, looks), NULL, 0, 0, 0, "",
      &look_table },
    CONF_TABLE_END,
};

static const char whole[] = "quantum = 0.05\n"
                            "masks = [\"a\", \"b c\"]\n"
                            "attributes = { driver = \"450\", count = 3, ratio = 0.5, on = true }\n"
                            "devices = [ { id = \"x\", memory = \"2g\", mig.slice = true },\n"
                            "            { id = \"y\", tags = [\"t\", \"u\"] } ]\n"
                            "[formats.\"10g-mig\"]\nunit = \"MIG\"\n"
                            "[formats.shares]\nunit = \"fGPU\"\nextra = 1\n"
                            "[formats.shares.number]\ndigits = 2\n[formats.shares.more]\nx = 1\n";

static void test_whole(void **state)
{
    struct settings got = { 0 };
    struct aq_error err = { 0 };
    const struct device *device;
    const struct look *look;

    (void)state;
    if (conf_load_text(items, "t", whole, strlen(whole), &got, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(got.quantum_micro, 50000);
    assert_int_equal(got.masks.count, 2);
    assert_string_equal(got.masks.items[1], "b c");
    assert_int_equal(got.attributes.count, 4);
    for (size_t i = 0; i < 4; i++) {
        static const char *const want[][2] = {
            { "count", "3" }, { "driver", "450" }, { "on", "true" }, { "ratio", "0.5" }
        };

        assert_string_equal(got.attributes.items[i].name, want[i][0]);
        assert_string_equal(got.attributes.items[i].value, want[i][1]);
    }
    assert_int_equal(got.devices.count, 2);
    device = got.devices.items;
    assert_string_equal(device[0].id, "x");
    assert_int_equal(device[0].memory_bytes, INT64_C(2) << 30);
    assert_true(device[0].is_slice);
    assert_int_equal(device[1].memory_bytes, INT64_C(1) << 30);
    assert_false(device[1].is_slice);
    assert_string_equal(device[1].tags.items[1], "u");
    assert_int_equal(got.looks.count, 2);
    look = got.looks.items;
    assert_string_equal(look[0].name, "10g-mig");
    assert_string_equal(look[1].name, "shares");
    assert_string_equal(look[1].unit, "fGPU");
    assert_int_equal(look[1].digits, 2);
    conf_done(items, &got);
    assert_null(got.devices.items);
}

static const struct {
    const char *text, *why;
} refused[] = {
    { "quantum = 0.0000001", "t:1: quantum: '0.0000001' is not a number with at most six" },
    { "quantum = 2", "outside" },
    { "quantum = nan", "quantum wants a number" },
    { "quantum = -0.5", "is not a number" },
    { "quantum = \".5\"", "is not a number" },
    { "masks = [1]", "t:1: masks[0] wants a list of texts" },
    { "masks = [[\"a\"]]", "masks[0] wants" },
    { "masks = 1", "masks wants a list" },
    { "attributes = 1", "attributes wants a table" },
    { "attributes = [1]", "attributes wants a table" },
    { "[attributes]\nx = [1]", "t:2: attributes.x wants a table of texts" },
    { "devices = 1", "devices wants tables" },
    { "devices = [1]", "t:1: devices[0] wants tables" },
    { "[devices]\nid = \"x\"", "devices wants tables" },
    { "[[devices]]\n", "devices[0]: id is not set" },
    { "[[devices]]\nid = \"x\"\n[[devices]]\nmemory = \"1g\"", "devices[1]: id is not set" },
    { "[[devices]]\nid = \"x\"\nmemroy = 1", "t:3: unknown key 'devices[0].memroy', did you mean"
                                             " 'memory'?" },
    { "[[devices]]\nid = \"x\"\nmemory = \"1x\"", "t:3: devices[0]: memory: '1x' is not a size" },
    { "[[devices]]\nid = \"x\"\nmig.slice = 1", "devices[0].mig.slice wants true or false" },
    { "[[devices]]\nid = 1", "t:2: devices[0].id wants text" },
    { "[formats]\nx = 1", "formats.x wants tables" },
    { "formats = []", "formats wants tables" },
    { "[formats.a]\nunit = 1", "t:2: formats.a.unit wants text" },
    { "[formats.a.number]\ndigits = 10", "formats.a: number.digits: 10 is outside 0..9" },
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(refused); i++) {
        struct settings got = { 0 };
        struct aq_error err = { 0 };
        int r = conf_load_text(items, "t", refused[i].text, strlen(refused[i].text), &got, &err);

        assert_row(r == -EINVAL, "%s", refused[i].text);
        assert_row(strstr(err.text, refused[i].why), "%s: %s", refused[i].text, err.text);
        assert_row(!got.devices.items && !got.masks.items, "%s", refused[i].text);
    }
}

/* One text stands for a list where there are no arrays: in the environment. */
static void test_words(void **state)
{
    struct settings got = { 0 };

    (void)state;
    assert_int_equal(conf_set(&items[1], " a, b\tc ", &got, NULL), 0);
    assert_int_equal(got.masks.count, 3);
    assert_string_equal(got.masks.items[2], "c");
    assert_int_equal(conf_set(&items[1], "", &got, NULL), 0);
    assert_int_equal(got.masks.count, 0);
    assert_int_equal(conf_set(&items[3], "x", &got, NULL), -EINVAL);
    conf_done(items, &got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
