/* SPDX-License-Identifier: Apache-2.0 */
/* Slots. The 'source' column names the vector of Backend.AI's own behaviour
 * that a row repeats, or says why a row differs from it.
 */
#include "random.h"
#include "testing.h"

#include <errno.h>
#include <pthread.h>

#include "model/slot.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static const struct {
    const char *name;
    bool ok;
    const char *why;
} name_rows[] = {
    { "cpu", true, "intrinsic" },
    { "cuda.shares", true, "device.major" },
    { "cuda.device:mig-10g", true, "device.major:minor" },
    { "cuda.device:3g.20gb-mig", true, "a minor part may have points" },
    { "atom-plus.device", true, "a dash" },
    { "", false, "empty" },
    { ".", false, "only a separator" },
    { "cpu.", false, "empty major" },
    { ".shares", false, "empty device" },
    { "cuda.device:", false, "empty minor" },
    { "cuda:mig", false, "a minor without a major" },
    { "cuda.a.b", false, "a point in the major part" },
    { "cuda.device:a:b", false, "a second colon" },
    { "CUDA.shares", false, "upper case would not survive resource.txt" },
    { "cuda.device:*-mig", false, "a pattern is no name" },
    { "a b", false, "blank" },
    { "-a", false, "begins with a dash" },
    { "a234567890123456789012345678901234567890123456789012345678901234", true, "64 bytes" },
    { "a2345678901234567890123456789012345678901234567890123456789012345", false, "65 bytes" },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(name_rows); i++) {
        const char *name = slot_name_intern(name_rows[i].name, strlen(name_rows[i].name));

        assert_row((name != NULL) == name_rows[i].ok, "%s", name_rows[i].why);
        if (name) {
            assert_string_equal(name, name_rows[i].name);
            assert_ptr_equal(name, slot_name_find(name, strlen(name)));
            assert_ptr_equal(name, slot_name_intern(name, strlen(name)));
        }
    }
    assert_null(slot_name_find("never.seen", 10));
    assert_null(slot_name_find("cuda.share", 10)); /* a prefix is another name */
    assert_int_equal(slot_name_device_len("cuda.device:mig-10g"), 4);
    assert_int_equal(slot_name_device_len("cpu"), 3);
    assert_true(slot_name_is_accelerator("cuda.shares"));
    assert_true(slot_name_is_accelerator("rocm.device"));
    assert_true(slot_name_is_accelerator("cuda.device:mig-10g"));
    assert_true(slot_name_is_accelerator("x.share"));
    assert_true(slot_name_is_accelerator("x.devices"));
    assert_false(slot_name_is_accelerator("cpu"));
    assert_false(slot_name_is_accelerator("cuda.mem"));
    assert_false(slot_name_is_accelerator("cuda.devicex"));
}

static const struct {
    const char *text;
    enum slot_type type;
    bool infinite;
    int64_t want; /* -1 = refused */
    const char *source;
} amount_rows[] = {
    { "1k", SLOT_BYTES, false, KIB, "1.2" },
    { "1K", SLOT_BYTES, false, KIB, "1.2: case-insensitive" },
    { "1KiB", SLOT_BYTES, false, KIB, "1.2" },
    { "1KB", SLOT_BYTES, false, KIB, "1.2" },
    { "1KiByte", SLOT_BYTES, false, KIB, "1.2" },
    { "1 KiBytes", SLOT_BYTES, false, KIB, "1.2" },
    { "1kbytes", SLOT_BYTES, false, KIB, "1.2" },
    { "1m", SLOT_BYTES, false, MIB, "1.2" },
    { "2g", SLOT_BYTES, false, 2 * GIB, "1.2" },
    { "3T", SLOT_BYTES, false, 3 * 1024 * GIB, "1.2" },
    { "1p", SLOT_BYTES, false, INT64_C(1) << 50, "1.2" },
    { "7e", SLOT_BYTES, false, INT64_C(7) << 60, "1.2" },
    { "0.000001z", SLOT_BYTES, false, INT64_C(1180591620717411), "1.2" },
    { "0.000001y", SLOT_BYTES, false, INT64_C(1208925819614629174), "1.2" },
    { "8e", SLOT_BYTES, false, -1, "1.2; differs: 2^63 is past our range" },
    { "1y", SLOT_BYTES, false, -1, "1.2; differs: past our range" },
    { "1 byte", SLOT_BYTES, false, 1, "1.2: the display of one byte" },
    { "930 bytes", SLOT_BYTES, false, 930, "1.2: the display of bytes" },
    { "930b", SLOT_BYTES, false, 930, "1.2; differs: refused upstream for want of a blank" },
    { " 2_048 ", SLOT_BYTES, false, 2048, "1.2: trimmed, underscores" },
    { "1_0k", SLOT_BYTES, false, 10 * KIB, "1.2" },
    { "_1", SLOT_BYTES, false, -1, "1.2; differs: a group sign stands between digits" },
    { "1.5", SLOT_BYTES, false, -1, "1.2: fractional bytes" },
    { "1.5 bytes", SLOT_BYTES, false, -1, "1.2; differs: truncated upstream" },
    { "536870912.000000", SLOT_BYTES, false, 536870912, "1.2" },
    { "1.1k", SLOT_BYTES, false, 1126, "1.2" },
    { "124.32 KiB", SLOT_BYTES, false, 127303, "1.2" },
    { "0.5m", SLOT_BYTES, false, 524288, "1.2" },
    { "1.46g", SLOT_BYTES, false, 1567663063, "1.2: read back from the lossy form" },
    { "1.15g", SLOT_BYTES, false, 1234803097, "1.2: read back from the lossy form" },
    { "1.123456789012g", SLOT_BYTES, false, 1206302541, "12 decimals" },
    { "1.1234567890123g", SLOT_BYTES, false, -1, "13 decimals" },
    { ".5k", SLOT_BYTES, false, 512, "no digit before the point" },
    { "inf", SLOT_BYTES, true, AMOUNT_INFINITE, "1.2" },
    { "Infinity", SLOT_BYTES, true, AMOUNT_INFINITE, "1.2" },
    { "infinite", SLOT_COUNT, true, AMOUNT_INFINITE, "1.2" },
    { "inf", SLOT_BYTES, false, -1, "1.2: where finite is required" },
    { "abc", SLOT_BYTES, false, -1, "1.2" },
    { "12x", SLOT_BYTES, false, -1, "1.2" },
    { "g", SLOT_BYTES, false, -1, "1.2" },
    { "", SLOT_BYTES, false, -1, "1.2" },
    { "-1g", SLOT_BYTES, false, -1, "1.2; differs: negatives end here, upstream later" },
    { "1e3", SLOT_BYTES, false, -1, "1.2" },
    { "1ib", SLOT_BYTES, false, -1, "an ending without a scale" },
    { "1 k b", SLOT_BYTES, false, -1, "a blank within the unit" },
    { "+1", SLOT_BYTES, false, -1, "a sign" },
    { "1..5g", SLOT_BYTES, false, -1, "two points" },
    { "nan", SLOT_BYTES, false, -1, "not a number" },
    { "9223372036854775806", SLOT_BYTES, false, INT64_MAX - 1, "the largest" },
    { "9223372036854775807", SLOT_BYTES, false, -1, "the value that means infinite" },
    { "99999999999999999999999", SLOT_BYTES, false, -1, "overflow" },
    { "1", SLOT_COUNT, false, AMOUNT_ONE, "1.3" },
    { "0.2", SLOT_COUNT, false, 200000, "document 001" },
    { "1.234567", SLOT_COUNT, false, 1234567, "1.3; differs: exact, upstream rounds to 1.235" },
    { "1.2345678", SLOT_COUNT, false, -1, "1.3; differs: not rounded but refused" },
    { "1.2340000000", SLOT_COUNT, false, 1234000, "zeros at the end are no decimals" },
    { "0.00001", SLOT_COUNT, false, 10, "F3" },
    { "2E+1", SLOT_COUNT, false, -1, "an exponent" },
    { "-1", SLOT_COUNT, false, -1, "1.3: cannot be negative" },
    { "-0", SLOT_COUNT, false, -1, "1.3" },
    { "1g", SLOT_COUNT, false, -1, "a unit on a count" },
    { ".", SLOT_COUNT, false, -1, "no digit" },
    { "9223372036854.775806", SLOT_COUNT, false, INT64_MAX - 1, "the largest" },
    { "9223372036854.775807", SLOT_COUNT, false, -1, "the value that means infinite" },
    { "99999999999999", SLOT_COUNT, false, -1, "overflow" },
    { "18446744073709551617", SLOT_COUNT, false, -1, "overflow of the whole part" },
    { "1", SLOT_UNIQUE, false, AMOUNT_ONE, "unique" },
    { "1.1", SLOT_UNIQUE, false, -1, "X2: a fraction of a unique device" },
    { "0.5", SLOT_UNIFIED, false, -1, "a fraction of a unified device" },
};

static void test_amount_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(amount_rows); i++) {
        struct aq_error err = { 0 };
        int64_t got = 77;
        int r = slot_amount_parse(amount_rows[i].text, strlen(amount_rows[i].text),
                                  amount_rows[i].type, amount_rows[i].infinite, "x.mem", &got,
                                  &err);

        if (amount_rows[i].want < 0) {
            assert_row(r == -EINVAL && got == 77, "'%s' (%s) gave %jd", amount_rows[i].text,
                       amount_rows[i].source, (intmax_t)got);
            assert_string_equal(err.field, "x.mem");
            continue;
        }
        assert_row(r == 0 && got == amount_rows[i].want, "'%s' (%s) gave %jd: %s",
                   amount_rows[i].text, amount_rows[i].source, (intmax_t)got, err.text);
    }
}

static const struct {
    int64_t amount;
    enum slot_type type;
    const char *plain, *brief, *human, *source;
} format_rows[] = {
    { 105935, SLOT_BYTES, "105935", "105935", "103.45 KiB", "1.2" },
    { 1, SLOT_BYTES, "1", "1", "1 byte", "1.2" },
    { 930, SLOT_BYTES, "930", "930", "930 bytes", "1.2" },
    { 0, SLOT_BYTES, "0", "0", "0 bytes", "1.2; differs: 0, upstream's fixed scale gives 0m" },
    { 1024, SLOT_BYTES, "1024", "1k", "1 KiB", "1.2" },
    { GIB, SLOT_BYTES, "1073741824", "1g", "1 GiB", "1.2" },
    { 524288, SLOT_BYTES, "524288", "512k", "512 KiB", "1.2; differs: upstream's is 0.5m" },
    { 1572864000, SLOT_BYTES, "1572864000", "1500m", "1.46 GiB",
      "1.2; differs: exact, upstream's short form is 1.46g" },
    { 1234567890, SLOT_BYTES, "1234567890", "1234567890", "1.15 GiB",
      "1.2; differs: exact, upstream's short form is 1.15g" },
    { 1029, SLOT_BYTES, "1029", "1029", "1 KiB", "1.0048 rounds down" },
    { 1024 + 128 * 5, SLOT_BYTES, "1664", "1664", "1.62 KiB", "1.625: half to even" },
    { 1024 + 128 * 3, SLOT_BYTES, "1408", "1408", "1.38 KiB", "1.375: half to even" },
    { INT64_C(7) << 60, SLOT_BYTES, "8070450532247928832", "7e", "7 EiB", "the last scale" },
    { AMOUNT_INFINITE, SLOT_BYTES, "Infinity", "Infinity", "Infinity", "1.3" },
    { -2048, SLOT_BYTES, "-2048", "-2k", "-2 KiB", "a difference" },
    { INT64_MIN, SLOT_BYTES, "-9223372036854775808", "-8e", "-8 EiB", "the smallest" },
    { 2 * GIB, SLOT_BYTES, "2147483648", "2g", "2 GiB", "1.3" },
    { 1234567, SLOT_COUNT, "1.234567", "1.234567", "1.234567",
      "1.3; differs: exact, upstream rounds to 1.23" },
    { 20 * AMOUNT_ONE, SLOT_COUNT, "20", "20", "20", "1.3" },
    { 0, SLOT_COUNT, "0", "0", "0", "1.3" },
    { 600000, SLOT_COUNT, "0.6", "0.6", "0.6", "1.3" },
    { -500000, SLOT_COUNT, "-0.5", "-0.5", "-0.5", "a difference" },
    { INT64_MIN, SLOT_COUNT, "-9223372036854.775808", "-9223372036854.775808",
      "-9223372036854.775808", "the smallest" },
    { AMOUNT_ONE, SLOT_UNIQUE, "1", "1", "1", "unique" },
};

static void test_amount_format(void **state)
{
    char buf[AMOUNT_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(format_rows); i++) {
        int64_t amount = format_rows[i].amount, again;
        enum slot_type type = format_rows[i].type;

        assert_string_equal(slot_amount_format(amount, type, buf), format_rows[i].plain);
        assert_string_equal(slot_amount_humanize(amount, type, buf), format_rows[i].human);
        assert_string_equal(slot_amount_short(amount, type, buf), format_rows[i].brief);
        if (amount >= 0) {
            assert_int_equal(slot_amount_parse(buf, strlen(buf), type, true, "x", &again, NULL), 0);
            assert_row(again == amount, "%s: the short form reads back", format_rows[i].source);
        }
    }
}

/* "a=3 b=200" into slots; "inf" is infinite, a leading '-' negates */
static struct slots make(const char *text)
{
    struct slots s = { 0 };
    char name[32], amount[32];
    int used;

    while (sscanf(text, " %31[^=]=%31s%n", name, amount, &used) == 2) {
        int64_t value;
        bool negative = amount[0] == '-';

        text += used;
        assert_int_equal(slot_amount_parse(amount + negative, strlen(amount + negative), SLOT_COUNT,
                                           true, name, &value, NULL),
                         0);
        assert_int_equal(slots_set(&s, name, negative ? -value : value), 0);
    }
    return s;
}

static const struct {
    const char *a, *b, *sum, *difference; /* NULL = overflow */
    bool le, ge;
    const char *source;
} pair_rows[] = {
    { "a=1 b=2", "b=3 c=4", "a=1 b=5 c=4", "a=1 b=-1 c=-4", false, false, "1.3: union" },
    { "a=3 b=200", "a=4 b=100", "a=7 b=300", "a=-1 b=100", false, false, "1.3: no order" },
    { "a=3 b=100", "a=4 b=100", "a=7 b=200", "a=-1 b=0", true, false, "1.3: lt" },
    { "a=1", "a=1 b=0", "a=2", "a=0", true, true, "1.3: missing is 0" },
    { "", "", "", "", true, true, "empty" },
    { "", "a=1", "a=1", "a=-1", true, false, "empty left" },
    { "a=-1", "", "a=-1", "a=-1", true, false, "a negative is below a missing name" },
    { "a=inf", "a=3", "a=inf", "a=inf", false, true, "1.3: inf-3=inf" },
    { "a=3", "a=inf", "a=inf", NULL, true, false, "finite less infinite" },
    { "a=inf", "a=inf", "a=inf", "a=inf", true, true, "infinite" },
    { "cpu=3 cuda=2.5 ram=2684354560", "cpu=1 cuda=2 ram=536870912",
      "cpu=4 cuda=4.5 ram=3221225472", "cpu=2 cuda=0.5 ram=2147483648", false, true,
      "two devices of each kind; 2.5 GiB and 512 MiB" },
    { "m=1", "a=1 z=1", "a=1 m=1 z=1", "a=-1 m=1 z=-1", false, false, "both ends" },
    { "a=9223372036854 b=1", "a=9223372036854", NULL, "b=1", false, true, "overflow" },
};

static void check_operation(int (*op)(struct slots *, const struct slots *), const char *a,
                            const char *b, const char *want, const char *source)
{
    AQ_CLEANUP(slots_donep) struct slots left = make(a);
    AQ_CLEANUP(slots_donep) struct slots right = make(b);
    AQ_CLEANUP(slots_donep) struct slots expected = make(want ? want : a);
    int r = op(&left, &right);

    assert_row(r == (want ? 0 : -EOVERFLOW), "%s: %d", source, r);
    assert_row(slots_eq(&left, &expected), "%s", source);
    for (size_t i = 1; i < left.count; i++)
        assert_true(strcmp(left.items[i - 1].name, left.items[i].name) < 0);
}

static void test_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(pair_rows); i++) {
        AQ_CLEANUP(slots_donep) struct slots a = make(pair_rows[i].a);
        AQ_CLEANUP(slots_donep) struct slots b = make(pair_rows[i].b);
        const char *source = pair_rows[i].source;

        assert_row(slots_le(&a, &b) == pair_rows[i].le, "%s", source);
        assert_row(slots_le(&b, &a) == pair_rows[i].ge, "%s", source);
        assert_row(slots_eq(&a, &b) == (pair_rows[i].le && pair_rows[i].ge), "%s", source);
        check_operation(slots_add, pair_rows[i].a, pair_rows[i].b, pair_rows[i].sum, source);
        check_operation(slots_sub, pair_rows[i].a, pair_rows[i].b, pair_rows[i].difference, source);
    }
}

static void test_sets(void **state)
{
    AQ_CLEANUP(slots_donep) struct slots a = make("a=1 b=2");
    AQ_CLEANUP(slots_donep) struct slots copy = { 0 };
    AQ_CLEANUP(slots_donep) struct slots none = { 0 };

    (void)state;
    assert_int_equal(slots_get(&a, "nothing"), 0);
    assert_true(slots_has(&a, "a"));
    assert_false(slots_has(&a, "c"));
    assert_int_equal(slots_set(&a, "not a name", 1), -EINVAL);
    slots_copy(&copy, &a);
    assert_true(slots_eq(&copy, &a));
    assert_int_equal(slots_sub(&a, &a), 0);
    assert_int_equal(slots_get(&a, "b"), 0);
    assert_int_equal(slots_add(&copy, &copy), 0);
    assert_int_equal(slots_get(&copy, "b"), 4 * AMOUNT_ONE);
    slots_copy(&copy, &none);
    assert_int_equal(copy.count, 0);
}

static void test_types(void **state)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *first = slot_types_new();
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *second = NULL;
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *third = NULL;
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *request = NULL;
    AQ_CLEANUP(slots_donep) struct slots s = { 0 };
    struct aq_error err = { 0 };
    enum slot_type type;

    (void)state;
    request = slot_types_ref(first);                                   /* a request begins */
    second = slot_types_merge(first, "cuda.shares", SLOT_COUNT, &err); /* an agent joins */
    assert_non_null(second);
    assert_int_equal(slot_types_count(second), 3);
    assert_string_equal(slot_types_name(second, 1, &type), "cuda.shares");
    assert_int_equal(type, SLOT_COUNT);
    /* the request sees what it saw at its start */
    assert_int_equal(slot_types_count(request), 2);
    assert_int_equal(slots_from_text("{\"cuda.shares\":1}", 17, request, &s, &err), -EINVAL);
    assert_string_equal(err.field, "cuda.shares");
    assert_int_equal(slots_from_text("{\"cuda.shares\":1}", 17, second, &s, &err), 0);
    /* another agent with the same slot changes nothing */
    third = slot_types_merge(second, "cuda.shares", SLOT_COUNT, &err);
    assert_ptr_equal(third, second);
    assert_null(slot_types_merge(second, "cuda.shares", SLOT_UNIQUE, &err));
    assert_int_equal(err.code, EEXIST);
    assert_string_equal(err.field, "cuda.shares");
    assert_null(slot_types_merge(second, "not a name", SLOT_COUNT, &err));
    assert_int_equal(err.code, EINVAL);
    assert_int_equal(slot_types_find(second, "mem", &type), 0);
    assert_int_equal(type, SLOT_BYTES);
    assert_int_equal(slot_types_find(second, "tpu.device", &type), -ENOENT);
    assert_int_equal(slot_type_guess("cuda.mem"), SLOT_BYTES);
    assert_int_equal(slot_type_guess("cuda.shares"), SLOT_COUNT);
    for (int t = SLOT_COUNT; t <= SLOT_UNIFIED; t++) {
        assert_int_equal(slot_type_parse(slot_type_name((enum slot_type)t), &type), 0);
        assert_int_equal((int)type, t);
    }
    assert_int_equal(slot_type_parse("many", &type), -EINVAL);
}

static const struct {
    const char *json;
    bool known;       /* with the table cpu, cuda.shares, mem */
    const char *want; /* as JSON; NULL = refused */
    const char *field;
    const char *source;
} json_rows[] = {
    { "{\"cpu\":\"1\",\"mem\":\"2g\",\"cuda.shares\":\"0.2\"}", true,
      "{\"cpu\":\"1\",\"cuda.shares\":\"0.2\",\"mem\":\"2147483648\"}", NULL, "document 001" },
    { "{\"cpu\":1,\"mem\":1073741824,\"cuda.shares\":0.5}", true,
      "{\"cpu\":\"1\",\"cuda.shares\":\"0.5\",\"mem\":\"1073741824\"}", NULL, "numbers" },
    { "{\"cpu\":0.1}", true, "{\"cpu\":\"0.1\"}", NULL, "a real stands for its decimal" },
    { "{\"mem\":536870912.0}", true, "{\"mem\":\"536870912\"}", NULL, "1.2: whole real bytes" },
    { "{\"mem\":0.5}", true, NULL, "mem", "1.2: fractional bytes" },
    { "{\"cpu\":0.1234567}", true, NULL, "cpu", "1.3; differs: refused, upstream rounds" },
    { "{\"cpu\":1e300}", true, NULL, "cpu", "overflow" },
    { "{\"cpu\":null}", true, "{}", NULL, "1.3: drop None" },
    { "{\"tpu.device\":0}", true, "{}", NULL, "1.3: drop zero" },
    { "{\"tpu.device\":1}", true, NULL, "tpu.device", "1.3: unknown slot type" },
    { "{\"tpu.device\":\"x\"}", true, NULL, "tpu.device", "1.3: unknown slot type" },
    { "{\"shmem\":\"64m\"}", true, NULL, "shmem", "1.3: the hint for shmem" },
    { "{\"cpu\":-1}", true, NULL, "cpu", "1.3: cannot be negative" },
    { "{\"cpu\":\"inf\"}", true, NULL, "cpu", "1.2: must be finite" },
    { "{\"cpu\":true}", true, NULL, "cpu", "a boolean" },
    { "{\"cpu\":{}}", true, NULL, "cpu", "an object" },
    { "{\"cpu\":1,\"cpu\":2}", true, NULL, "", "the same name twice" },
    { "[]", true, NULL, "", "not an object" },
    { "{\"cpu\"", true, NULL, "", "cut off" },
    { "{\"cpu\":99999999999999999999}", true, NULL, "", "an integer past 64 bits" },
    { "{\"tpu.device\":\"2.5\",\"tpu.mem\":\"1g\",\"x\":\"inf\"}", false,
      "{\"tpu.device\":\"2.5\",\"tpu.mem\":\"1073741824\",\"x\":\"Infinity\"}", NULL,
      "1.1: types guessed" },
    { "{\"Not A Name\":1}", false, NULL, "Not A Name", "grammar" },
};

static struct slot_types *known_types(void)
{
    struct slot_types *base = slot_types_new();
    struct slot_types *types = slot_types_merge(base, "cuda.shares", SLOT_COUNT, NULL);

    slot_types_unref(base);
    return types;
}

static void test_json(void **state)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = known_types();

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(json_rows); i++) {
        AQ_CLEANUP(slots_donep) struct slots s = make("before=1");
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct jsonw w = jsonw_make(&out);
        struct slot_types *with = json_rows[i].known ? types : NULL;
        struct aq_error err = { 0 };
        int r = slots_from_text(json_rows[i].json, strlen(json_rows[i].json), with, &s, &err);

        if (!json_rows[i].want) {
            assert_row(r == -EINVAL, "%s: %d", json_rows[i].source, r);
            assert_row(strcmp(err.field, json_rows[i].field) == 0, "%s: '%s'", json_rows[i].source,
                       err.field);
            assert_int_equal(slots_get(&s, "before"), AMOUNT_ONE);
            continue;
        }
        assert_row(r == 0, "%s: %s", json_rows[i].source, err.text);
        slots_write_json(&s, with, &w);
        assert_string_equal(out.data, json_rows[i].want);
    }
}

static void test_humanize(void **state)
{
    AQ_CLEANUP(slots_donep) struct slots s = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    assert_int_equal(slots_set(&s, "mem", GIB), 0);
    assert_int_equal(slots_set(&s, "cpu", 1500000), 0);
    slots_humanize(&s, NULL, &out);
    assert_string_equal(out.data, "cpu=1.5 mem=1 GiB");
}

static void test_policy(void **state)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = known_types();
    AQ_CLEANUP(slots_donep) struct slots limits = make("cpu=4 cuda.shares=0 tpu.device=1");
    AQ_CLEANUP(slots_donep) struct slots out = { 0 };

    (void)state;
    slots_from_policy(&out, &limits, true, types);
    assert_int_equal(out.count, 3);
    assert_int_equal(slots_get(&out, "cpu"), 4 * AMOUNT_ONE);
    assert_int_equal(slots_get(&out, "cuda.shares"), 0);
    assert_true(slots_get(&out, "mem") == AMOUNT_INFINITE);
    slots_from_policy(&out, &limits, false, types);
    assert_int_equal(slots_get(&out, "mem"), 0);
    assert_false(slots_has(&out, "tpu.device"));
}

static void random_slots(struct test_random *r, struct slots *ret)
{
    static const char *const names[] = { "a", "b.device", "c", "d.mem", "e.x:y", "f" };

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (random_below(r, 2))
            assert_int_equal(slots_set(ret, names[i], random_below(r, 1 << 20) - (1 << 18)), 0);
}

/* Sums undo differences, the order is a partial order, text reads back. */
static void test_random(void **state)
{
    struct test_random r = random_begin("slots");
    uint64_t rounds = random_scaled(100000);

    (void)state;
    for (uint64_t i = 0; i < rounds; i++) {
        AQ_CLEANUP(slots_donep) struct slots a = { 0 };
        AQ_CLEANUP(slots_donep) struct slots b = { 0 };
        AQ_CLEANUP(slots_donep) struct slots sum = { 0 };
        int64_t amount = (int64_t)(random_next(&r) >> (1 + random_below(&r, 62)));
        char text[AMOUNT_TEXT_MAX];
        int64_t again;

        random_slots(&r, &a);
        random_slots(&r, &b);
        slots_copy(&sum, &a);
        assert_int_equal(slots_add(&sum, &b), 0);
        for (size_t j = 0; j < sum.count; j++)
            assert_int_equal(sum.items[j].amount,
                             slots_get(&a, sum.items[j].name) + slots_get(&b, sum.items[j].name));
        assert_int_equal(slots_sub(&sum, &b), 0);
        assert_true(slots_eq(&sum, &a));
        assert_int_equal(slots_eq(&a, &b), slots_le(&a, &b) && slots_le(&b, &a));
        for (int type = SLOT_COUNT; type <= SLOT_BYTES; type++) {
            slot_amount_short(amount, (enum slot_type)type, text);
            assert_int_equal(slot_amount_parse(text, strlen(text), (enum slot_type)type, true, "x",
                                               &again, NULL),
                             0);
            assert_int_equal(again, amount);
        }
    }
}

static void *intern_many(void *data)
{
    const char **names = data;
    char name[32];

    for (int i = 0; i < 500; i++) {
        (void)snprintf(name, sizeof(name), "thread.device:%d", i);
        names[i] = slot_name_intern(name, strlen(name));
    }
    return NULL;
}

static void test_threads(void **state)
{
    static const char *names[4][500];
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, intern_many, names[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 500; i++) {
        assert_non_null(names[0][i]);
        for (int t = 1; t < 4; t++)
            assert_ptr_equal(names[t][i], names[0][i]);
    }
}

/* Runs last: the table stays full. */
static void test_full_table(void **state)
{
    char name[32];
    int i;

    (void)state;
    for (i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof(name), "many.device:%d", i);
        if (!slot_name_intern(name, strlen(name)))
            break;
    }
    assert_in_range(i, 3000, 4096);
    assert_non_null(slot_name_intern("cpu", 3));
    assert_null(slot_name_find(name, strlen(name)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_amount_parse),
        cmocka_unit_test(test_amount_format), cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_sets),          cmocka_unit_test(test_types),
        cmocka_unit_test(test_json),          cmocka_unit_test(test_humanize),
        cmocka_unit_test(test_policy),        cmocka_unit_test(test_random),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_full_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
