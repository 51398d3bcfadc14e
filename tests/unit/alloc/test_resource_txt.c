/* SPDX-License-Identifier: Apache-2.0 */
/* resource.txt, grants and reserved amounts. */
#include "testing.h"

#include <errno.h>

#include "alloc/system_reserved.h"
#include "alloc/resource_txt.h"

#define GPU1 "c59395cd-ac91-4cd3-a1b0-3d2568aa2d01"
#define GPU2 "c59395cd-ac91-4cd3-a1b0-3d2568aa2d02"

static void add(struct alloc_grant *grant, const char *slot, const char *id, int64_t amount)
{
    const char *name = slot_name_intern(slot, strlen(slot));

    assert_int_equal(
        alloc_grant_add(grant, name,
                        strcmp(slot, "npu.all") == 0 ? SLOT_UNIFIED : slot_type_guess(slot), id,
                        strlen(id), amount, NULL),
        0);
}

/* The second kernel of document 001. */
static const char document_001[] =
    "SCRATCH_SIZE=0m\n"
    "MOUNTS=/data/x:/home/work/x:rw,volume:/opt/v:ro\n"
    "SLOTS={\"cpu\":\"1\",\"cuda.shares\":\"1.2\",\"mem\":\"2147483648\"}\n"
    "UNIFIED_DEVICES=[[\"u0\",\"npu.all\"]]\n"
    "CUDA.SHARES_SHARES=" GPU1 ":0.60," GPU2 ":0.60\n"
    "CPU_SHARES=1:1\n"
    "MEM_SHARES=root:2g\n"
    "CUDA_RESOURCE_VIRTUALIZED=1\n"
    "CUDA_MEMORY_LIMITS=" GPU1 ":1288490188," GPU2 ":1288490188\n"
    "CID=0123=45\n";

static void test_document(void **state)
{
    static const struct resource_mount mounts[] = { { "/data/x", "/home/work/x", "rw" },
                                                    { "volume", "/opt/v", "ro" } };
    static const struct text_pair pairs[] = { { "CUDA_RESOURCE_VIRTUALIZED", "1" },
                                              { "CUDA_MEMORY_LIMITS",
                                                GPU1 ":1288490188," GPU2 ":1288490188" } };
    struct resource_txt rt = { .mounts = mounts,
                               .mount_count = 2,
                               .pairs = pairs,
                               .pair_count = 2,
                               .container_id = "0123=45" };
    AQ_CLEANUP(resource_txt_donep) struct resource_txt back = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf again = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    add(&rt.grant, "cuda.shares", GPU1, 600000);
    add(&rt.grant, "cuda.shares", GPU2, 600000);
    add(&rt.grant, "cpu", "1", AMOUNT_ONE);
    add(&rt.grant, "mem", "root", INT64_C(2) << 30);
    add(&rt.grant, "npu.all", "u0", 0);
    assert_int_equal(slots_set(&rt.slots, "cpu", AMOUNT_ONE), 0);
    assert_int_equal(slots_set(&rt.slots, "cuda.shares", 1200000), 0);
    assert_int_equal(slots_set(&rt.slots, "mem", INT64_C(2) << 30), 0);
    assert_int_equal(resource_txt_write(&rt, NULL, &out, &err), 0);
    assert_string_equal(out.data, document_001);

    assert_int_equal(resource_txt_read(out.data, out.len, NULL, &back, &err), 0);
    assert_int_equal(back.mount_count, 2);
    assert_string_equal(back.mounts[1].source, "volume");
    assert_string_equal(back.container_id, "0123=45");
    assert_true(slots_eq(&back.slots, &rt.slots));
    assert_int_equal(resource_txt_write(&back, NULL, &again, &err), 0);
    assert_string_equal(again.data, out.data);
    slots_done(&rt.slots);
    alloc_grant_done(&rt.grant);
}

#define HEAD "SCRATCH_SIZE=0m\nMOUNTS=\nSLOTS={}\n"

static const struct {
    const char *text;
    const char *field; /* NULL = accepted */
    const char *why;
} read_rows[] = {
    { HEAD, NULL, "the mandatory lines" },
    { "SLOTS={}\r\nno equals sign\n\nMOUNTS=\nSCRATCH_SIZE=1g", NULL, "any order, CRLF, no end" },
    { HEAD "CPU_SHARES=0:1,,1:1,\n", NULL, "blank entries" },
    { HEAD "CPU_SHARES=\n", NULL, "no entries" },
    { HEAD "OLD.DEVICE:X_SHARES=a:1\n", NULL, "a slot of a former plugin" },
    { HEAD "CUDA.SHARES_SHARES=a:0.00499\n", NULL, "as many decimals as needed" },
    { "MOUNTS=\nSLOTS={}\n", "SCRATCH_SIZE", "no SCRATCH_SIZE" },
    { "SCRATCH_SIZE=0m\nSLOTS={}\n", "MOUNTS", "no MOUNTS" },
    { "SCRATCH_SIZE=0m\nMOUNTS=\n", "SLOTS", "no SLOTS" },
    { HEAD "SLOTS={}\n", "resource.txt", "a line twice" },
    { HEAD "CID=a\001b\n", "CID", "a control character in an id" },
    { "SCRATCH_SIZE=x\nMOUNTS=\nSLOTS={}\n", "SCRATCH_SIZE", "a size" },
    { "SCRATCH_SIZE=0\nMOUNTS=\nSLOTS=[]\n", "", "slots that are a list" },
    { "SCRATCH_SIZE=0\nMOUNTS=\nSLOTS={\n", "SLOTS", "slots that are not JSON" },
    { "SCRATCH_SIZE=0\nMOUNTS=\nSLOTS={\"A\":1}\n", "SLOTS", "no slot name" },
    { "SCRATCH_SIZE=0\nMOUNTS=\nSLOTS={\"cpu\":\"-1\"}\n", "cpu", "a negative amount" },
    { "SCRATCH_SIZE=0\nMOUNTS=a/b:/c:ro\nSLOTS={}\n", "MOUNTS", "a relative path" },
    { "SCRATCH_SIZE=0\nMOUNTS=/a:c:ro\nSLOTS={}\n", "MOUNTS", "a relative target" },
    { "SCRATCH_SIZE=0\nMOUNTS=/a:/c:rx\nSLOTS={}\n", "MOUNTS", "an unknown permission" },
    { "SCRATCH_SIZE=0\nMOUNTS=/a:/c\nSLOTS={}\n", "MOUNTS", "no permission" },
    { HEAD "cpu_SHARES=0:1\n", "_SHARES", "lower case" },
    { HEAD "_SHARES=0:1\n", "", "no slot" },
    { HEAD "CPU_SHARES=0\n", "cpu", "no amount" },
    { HEAD "CPU_SHARES=0:1e1\n", "cpu", "an exponent" },
    { HEAD "CPU_SHARES=0:1,0:1\n", "cpu", "a device twice" },
    { HEAD "CPU_SHARES=a b:1\n", "cpu", "no device id" },
    { HEAD "A=b\rc\n", "", "a control character" },
    { HEAD "A B=c\n", "", "a key that is no word" },
    { HEAD "UNIFIED_DEVICES={}\n", "UNIFIED_DEVICES", "no list" },
    { HEAD "UNIFIED_DEVICES=[[\"a\"]]\n", "UNIFIED_DEVICES", "no pair" },
    { HEAD "UNIFIED_DEVICES=[[\"a\",\"B\"]]\n", "UNIFIED_DEVICES", "no slot name" },
};

static void test_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(read_rows); i++) {
        AQ_CLEANUP(resource_txt_donep) struct resource_txt rt = { .scratch_bytes = 77 };
        struct aq_error err = { 0 };
        int r = resource_txt_read(read_rows[i].text, strlen(read_rows[i].text), NULL, &rt, &err);

        if (!read_rows[i].field) {
            assert_row(r == 0, "%s: %s", read_rows[i].why, err.text);
            continue;
        }
        assert_row(r == -EINVAL, "%s: %d", read_rows[i].why, r);
        assert_row(strcmp(err.field, read_rows[i].field) == 0, "%s: field '%s', %s",
                   read_rows[i].why, err.field, err.text);
        assert_int_equal(rt.scratch_bytes, 77);
    }
}

static void test_write_refused(void **state)
{
    static const struct resource_mount bad_mounts[] = {
        { "/a,b", "/c", "ro" }, { "/a", "/c:d", "ro" }, { "/a", "c", "ro" },
        { "a/b", "/c", "ro" },  { "/a", "/c", "x" },    { "", "/c", "ro" }
    };
    static const struct text_pair bad_pairs[] = {
        { "A", "b\nc" }, { "A=B", "c" }, { "CPU_SHARES", "0:1" }, { "SLOTS", "" },
        { "", "x" },     { "A B", "c" }, { "CID", "x" }
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    strbuf_adds(&out, "kept");
    for (size_t i = 0; i < AQ_COUNT(bad_mounts); i++) {
        struct resource_txt rt = { .mounts = &bad_mounts[i], .mount_count = 1 };

        assert_row(resource_txt_write(&rt, NULL, &out, &err) == -EINVAL, "mount %zu", i);
        assert_string_equal(err.field, bad_mounts[i].target);
        assert_string_equal(out.data, "kept");
    }
    for (size_t i = 0; i < AQ_COUNT(bad_pairs); i++) {
        struct resource_txt rt = { .pairs = &bad_pairs[i], .pair_count = 1 };

        assert_row(resource_txt_write(&rt, NULL, &out, &err) == -EINVAL, "pair %zu", i);
        assert_string_equal(out.data, "kept");
    }
}

/* A type that the name does not tell is read as known. */
static void test_known_types(void **state)
{
    static const char text[] = "SCRATCH_SIZE=0\nMOUNTS=\n"
                               "SLOTS={\"x.mem-units\":\"0.5\",\"y.mem\":\"1g\"}\n"
                               "X.MEM-UNITS_SHARES=a:0.50\n";
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *base = slot_types_new();
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = slot_types_merge(base, "x.mem-units",
                                                                              SLOT_COUNT, NULL);
    AQ_CLEANUP(resource_txt_donep) struct resource_txt rt = { 0 };

    (void)state;
    assert_int_equal(resource_txt_read(text, sizeof(text) - 1, NULL, &rt, NULL), -EINVAL);
    assert_int_equal(resource_txt_read(text, sizeof(text) - 1, types, &rt, NULL), 0);
    assert_int_equal(slots_get(&rt.slots, "x.mem-units"), 500000);
    assert_int_equal(slots_get(&rt.slots, "y.mem"), INT64_C(1) << 30);
    assert_int_equal(rt.grant.items[0].amount, 500000);
}

static void read_kernel(const char *cpu, const char *mem, const char *shares,
                        struct resource_txt *ret)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
                   "SCRATCH_SIZE=0m\nMOUNTS=\n"
                   "SLOTS={\"cpu\":\"%s\",\"mem\":\"%s\",\"cuda.shares\":\"%s\"}\n"
                   "CUDA.SHARES_SHARES=g0:%s\nCPU_SHARES=0:%s\nMEM_SHARES=root:%s\n",
                   cpu, mem, shares, shares, cpu, mem);
    assert_int_equal(resource_txt_read(text, strlen(text), NULL, ret, NULL), 0);
}

static void check_usage(const struct alloc_map *map, int64_t cpu, int64_t mem, int64_t shares)
{
    struct alloc_device_state state;

    for (size_t i = 0; alloc_map_device(map, i, &state); i++) {
        assert_false(state.known);
        assert_int_equal(state.allocated, strcmp(state.id, "0") == 0      ? cpu * AMOUNT_ONE
                                          : strcmp(state.id, "root") == 0 ? mem
                                                                          : shares);
    }
}

/* 2.9 usage scan: 5+7+13, 4096+2048+1024, .5+.8+.2; then without the second */
static void test_usage_scan(void **state)
{
    struct resource_txt kernels[3] = { { 0 } };
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = NULL;
    AQ_CLEANUP(slots_donep) struct slots sum = { 0 };
    const struct alloc_config nothing = { 0 };

    (void)state;
    read_kernel("5", "4096", "0.5", &kernels[0]);
    read_kernel("7", "2048", "0.8", &kernels[1]);
    read_kernel("13", "1024", "0.2", &kernels[2]);
    assert_int_equal(alloc_map_new(&nothing, &map, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(alloc_map_apply(map, &kernels[i].grant, NULL), 0);
        assert_int_equal(slots_add(&sum, &kernels[i].slots), 0);
    }
    check_usage(map, 25, 7168, 1500000);
    assert_int_equal(slots_get(&sum, "cpu"), 25 * AMOUNT_ONE);
    assert_int_equal(slots_get(&sum, "cuda.shares"), 1500000);
    assert_int_equal(alloc_map_release(map, &kernels[1].grant, NULL), 0);
    check_usage(map, 18, 5120, 700000);
    assert_int_equal(alloc_map_release(map, &kernels[1].grant, NULL), -EINVAL);
    check_usage(map, 18, 5120, 700000);
    for (int i = 0; i < 3; i++)
        resource_txt_done(&kernels[i]);
}

/* Document 001 from the map of the node and from the files alone. */
static void test_gpu_map(void **state)
{
    static const struct alloc_slot slots[] = { { .name = "cuda.shares", .quantum = 10000 },
                                               { .name = "cuda.device" },
                                               { .name = "cuda.device:1g-mig",
                                                 .type = SLOT_UNIQUE } };
    static const struct alloc_device devices[] = { { GPU1, "cuda.shares", AMOUNT_ONE, 0, 0 },
                                                   { GPU2, "cuda.shares", AMOUNT_ONE, 1, 0 },
                                                   { GPU1, "cuda.device", AMOUNT_ONE, 0, 0 },
                                                   { "m", "cuda.device:1g-mig", AMOUNT_ONE, 0 } };
    const struct alloc_config config = { slots, 3, devices, 4, NULL, NULL, ALLOC_INTERLEAVED };
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = NULL;
    AQ_CLEANUP(slots_donep) struct slots s = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct alloc_grant grants[2] = { { 0 } };
    struct alloc_grant old = { 0 };
    struct jsonw w = jsonw_make(&out);

    (void)state;
    assert_int_equal(alloc_map_new(&config, &map, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(slots_set(&s, "cuda.shares", i ? 1200000 : 200000), 0);
        assert_int_equal(
            alloc_map_allocate(map, &(struct alloc_request){ .slots = &s }, &grants[i], NULL), 0);
    }
    add(&old, "cuda.device:1g-mig", "m", AMOUNT_ONE); /* a slice is no GPU */
    add(&old, "rocm.device", "gone", AMOUNT_ONE);     /* no longer there, but held */
    add(&old, "cpu", "7", AMOUNT_ONE);
    assert_int_equal(alloc_map_apply(map, &old, NULL), 0);
    alloc_map_write_gpu(map, &w);
    assert_string_equal(out.data,
                        "{\"" GPU1 "\":\"0.60\",\"" GPU2 "\":\"0.80\",\"gone\":\"1.00\"}");
    for (int i = 0; i < 2; i++)
        alloc_grant_done(&grants[i]);
    alloc_grant_done(&old);
}

static const struct {
    const char *slot;
    int64_t amount;
    const char *want;
} amount_rows[] = {
    { "cuda.shares", 200000, "0.20" },  { "cuda.shares", AMOUNT_ONE, "1.00" },
    { "cuda.shares", 4990, "0.00499" }, { "x.share", 1500000, "1.50" },
    { "cuda.device", AMOUNT_ONE, "1" }, { "cpu", 2 * AMOUNT_ONE, "2" },
    { "cpu", 500000, "0.50" },          { "mem", INT64_C(3) << 29, "1536m" },
};

static void test_grant_text(void **state)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    char text[AMOUNT_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(amount_rows); i++)
        assert_string_equal(grant_amount_format(amount_rows[i].slot,
                                                slot_type_guess(amount_rows[i].slot),
                                                amount_rows[i].amount, text),
                            amount_rows[i].want);
    add(&grant, "cuda.shares", "a", 600000);
    add(&grant, "cuda.shares", "b", 600000);
    add(&grant, "mem", "root", 1024);
    alloc_grant_write_json(&grant, &w);
    assert_string_equal(out.data, "{\"cuda.shares\":{\"a\":\"0.60\",\"b\":\"0.60\"},"
                                  "\"mem\":{\"root\":\"1024\"}}");
    assert_int_equal(alloc_grant_add(&grant, "cpu", SLOT_COUNT, "a:b", 3, 1, &err), -EINVAL);
    assert_string_equal(err.field, "cpu");
    assert_int_equal(grant.count, 3);
}

static const struct {
    const char *slot;
    int64_t amount, align;
    const char *want; /* "id=capacity …" of what is left; NULL = refused */
    const char *why;
} reserve_rows[] = {
    { "cpu", AMOUNT_ONE, 0, "0=1000000 1=1000000 root=1000 ", "1.6: one core, the last" },
    { "cpu", 2500000, 0, "0=500000 root=1000 ", "more than one device" },
    { "cpu", 0, 0, "0=1000000 1=1000000 2=1000000 root=1000 ", "nothing" },
    { "cpu", 3 * AMOUNT_ONE, 0, NULL, "1.6: nothing would be left" },
    { "cpu", 4 * AMOUNT_ONE, 0, NULL, "1.6: reserved > total" },
    { "cpu", -1, 0, NULL, "negative" },
    { "mem", 100, 16, "0=1000000 1=1000000 2=1000000 root=896 ", "1.6: aligned down" },
    { "mem", 990, 16, NULL, "nothing left after aligning" },
    { "gpu.device", 0, 0, NULL, "no such devices" },
};

static void test_reserve(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(reserve_rows); i++) {
        struct alloc_device devices[] = { { "0", "cpu", AMOUNT_ONE, 0, 0 },
                                          { "1", "cpu", AMOUNT_ONE, 0, 0 },
                                          { "2", "cpu", AMOUNT_ONE, 0, 0 },
                                          { "root", "mem", 1000, -1, 0 } };
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        size_t count = AQ_COUNT(devices);
        struct aq_error err = { 0 };
        int r = alloc_reserve(devices, &count, reserve_rows[i].slot, reserve_rows[i].amount,
                              reserve_rows[i].align, &err);

        for (size_t j = 0; j < count; j++)
            strbuf_addf(&out, "%s=%jd ", devices[j].id, (intmax_t)devices[j].capacity);
        assert_row(r == (reserve_rows[i].want ? 0 : -EINVAL), "%s: %s", reserve_rows[i].why,
                   err.text);
        assert_string_equal(out.data, reserve_rows[i].want
                                          ? reserve_rows[i].want
                                          : "0=1000000 1=1000000 2=1000000 root=1000 ");
        if (r < 0)
            assert_string_equal(err.field, reserve_rows[i].slot);
    }
}

static const struct {
    struct alloc_slot slot;
    struct alloc_device device[2];
    const char *field, *why;
} build_rows[] = {
    { { .name = "Bad" }, { { "a", "Bad", 1, 0 } }, "Bad", "no slot name" },
    { { .name = "x.device" }, { { "a", "y.device", 1, 0, 0 } }, "a", "a slot that is not given" },
    { { .name = "x.device" }, { { "a b", "x.device", 1, 0 } }, "a b", "no device id" },
    { { .name = "x.device" }, { { "a", "x.device", -1, 0, 0 } }, "a", "a negative capacity" },
    { { .name = "x.device" }, { { "a", "x.device", AMOUNT_INFINITE, 0, 0 } }, "a", "infinite" },
    { { .name = "x.device" },
      { { "a", "x.device", 1, 0, 0 }, { "a", "x.device", 1, 0, 0 } },
      "a",
      "a device twice" },
    { { .name = "x.device" },
      { { "a", "x.device", INT64_MAX - 1, 0, 0 }, { "b", "x.device", INT64_MAX - 1, 0, 0 } },
      "b",
      "overflow" },
    { { .name = "x.device", .type = SLOT_UNIQUE },
      { { "a", "x.device", 2 * AMOUNT_ONE, 0, 0 } },
      "a",
      "two of a unique device" },
    { { .name = "x.device", .quantum = -1 },
      { { "a", "x.device", 1, 0, 0 } },
      "x.device",
      "a negative quantum" },
    { { .name = "x.device" },
      { { "a", "x.device", AMOUNT_ONE, 0, 1000 } },
      "a",
      "a part of a whole device" },
    { { .name = "x.shares", .quantum = 1000 },
      { { "a", "x.shares", AMOUNT_ONE, 0, -1 } },
      "a",
      "a negative quantum of a device" },
    { { .name = "x.mem", .type = SLOT_BYTES, .quantum = 1 },
      { { "a", "x.mem", 1, 0, 0 } },
      "x.mem",
      "fractional bytes" },
};

static void test_build_refused(void **state)
{
    static const struct alloc_slot twice[] = { { .name = "x.device" }, { .name = "x.device" } };
    struct alloc_config config = { .slots = twice, .slot_count = 2 };
    struct alloc_map *map = NULL;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(alloc_map_new(&config, &map, &err), -EINVAL);
    assert_string_equal(err.field, "x.device");
    config.slot_count = 1;
    for (size_t i = 0; i < AQ_COUNT(build_rows); i++) {
        config.slots = &build_rows[i].slot;
        config.devices = build_rows[i].device;
        config.device_count = build_rows[i].device[1].id ? 2 : 1;
        assert_row(alloc_map_new(&config, &map, &err) < 0, "%s", build_rows[i].why);
        assert_row(strcmp(err.field, build_rows[i].field) == 0, "%s: '%s'", build_rows[i].why,
                   err.field);
        assert_null(map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),      cmocka_unit_test(test_read),
        cmocka_unit_test(test_write_refused), cmocka_unit_test(test_known_types),
        cmocka_unit_test(test_usage_scan),    cmocka_unit_test(test_gpu_map),
        cmocka_unit_test(test_grant_text),    cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_build_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
