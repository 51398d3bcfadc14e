/* SPDX-License-Identifier: Apache-2.0 */
/* What an attempt used of what it asked for, and what to ask for next time */
#include "testing.h"

#include "base/clock.h"
#include "model/session_summary.h"

#define MIB (INT64_C(1) << 20)
#define STATISTICS                                                               \
    "{\"cpu_used\":{\"current\":\"90000\"},\"cpu_util\":{\"stats.avg\":\"75\"}," \
    "\"mem\":{\"current\":\"1\",\"stats.max\":\"314572800\"},"                   \
    "\"cuda_mem\":{\"capacity\":\"1048576000\",\"stats.max\":\"524288000\"},"    \
    "\"cuda_util\":{\"stats.avg\":\"50\"}}"

static void ask(struct slots *slots, int cpus, int64_t mem)
{
    assert_int_equal(slots_set(slots, slot_name_intern("cpu", 3), cpus * AMOUNT_ONE), 0);
    assert_int_equal(slots_set(slots, slot_name_intern("mem", 3), mem), 0);
}

static void one_kernel(void **state)
{
    struct session_summary s = { .wall_usec = 60 * USEC_PER_SEC };
    AQ_CLEANUP(slots_donep) struct slots slots = { .items = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    (void)state;
    ask(&slots, 4, 1000 * MIB);
    session_summary_add(&s, STATISTICS, &slots);
    session_summary_write(&s, &w);
    assert_string_equal(text.data,
                        "{\"wall_sec\":60,\"cpu_sec\":90,\"cpu_asked\":4,\"cpu_efficiency\":0.375,"
                        "\"mem_peak\":314572800,\"mem_asked\":1048576000,\"gpu_sec\":30,"
                        "\"gpu_mem_peak\":524288000,\"gpu_mem_asked\":1048576000,"
                        "\"suggested\":{\"cpu\":2,\"mem\":402653184}}");
}

static void nothing_was_measured(void **state)
{
    struct session_summary s = { .wall_usec = 0 };
    AQ_CLEANUP(slots_donep) struct slots slots = { .items = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    (void)state;
    session_summary_add(&s, NULL, &slots);
    session_summary_add_measured(&s, NULL, &slots);
    session_summary_add(&s, "[\"damaged\"", &slots);
    session_summary_write(&s, &w);
    assert_string_equal(text.data, "{\"wall_sec\":0,\"cpu_sec\":null,\"cpu_asked\":null,"
                                   "\"cpu_efficiency\":null,\"mem_peak\":null,\"mem_asked\":null,"
                                   "\"gpu_sec\":null,\"gpu_mem_peak\":null,\"gpu_mem_asked\":null,"
                                   "\"suggested\":{\"cpu\":null,\"mem\":null}}");
}

static void sizes(void **state)
{
    static const struct {
        int64_t peak, asked; /* MiB */
        bool was_oom;
        int64_t want;
    } rows[] = {
        { 300, 1000, false, 384 },   { 950, 1000, false, 1000 },     { 10, 1000, false, 32 },
        { 2000, 8000, false, 2560 }, { 20480, 65536, false, 24576 }, { 1000, 1000, true, 2000 },
        { 0, 1000, false, 0 },       { 0, 1000, true, 2000 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct session_summary s = { .has_mem = true,
                                           .mem_peak = rows[i].peak * MIB,
                                           .mem_asked = rows[i].asked * MIB,
                                           .was_oom = rows[i].was_oom };

        assert_row(session_summary_suggest_mem(&s) == rows[i].want * MIB, "row %zu: %lld", i,
                   (long long)(session_summary_suggest_mem(&s) / MIB));
    }
}

/* Each kernel asks for its own: memory is that of the one which used most, cores are those of all. */
static void several_kernels(void **state)
{
    struct session_summary s = { .wall_usec = 100 * USEC_PER_SEC };
    AQ_CLEANUP(slots_donep) struct slots slots = { .items = NULL };

    (void)state;
    ask(&slots, 2, 1000 * MIB);
    session_summary_add(&s, "{\"cpu_used\":{\"current\":\"150000\"},\"mem\":{\"stats.max\":\"5\"}}",
                        &slots);
    session_summary_add(&s, "{\"cpu_used\":{\"current\":\"50000\"},\"mem\":{\"stats.max\":\"9\"}}",
                        &slots);
    assert_int_equal(s.mem_peak, 9);
    assert_int_equal(s.mem_asked, 1000 * MIB);
    assert_int_equal((int)s.cpu_sec, 200);
    assert_int_equal((int)s.cpu_asked, 4);
    assert_int_equal(session_summary_suggest_cpu(&s), 2);
}

/* An agent may say anything. */
static void values_that_cannot_be(void **state)
{
    static const char *const values[] = { "9e18", "1e300", "-9e18", "nan", "inf" };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(values); i++) {
        struct session_summary s = { .wall_usec = 1 };
        AQ_CLEANUP(slots_donep) struct slots slots = { .items = NULL };
        AQ_CLEANUP(aq_freep) char *text = aq_format(
            "{\"cpu_used\":{\"current\":\"%s\"},\"mem\":{\"stats.max\":\"%s\"},"
            "\"cuda_mem\":{\"capacity\":\"%s\",\"stats.max\":\"%s\"}}",
            values[i], values[i], values[i], values[i]);

        ask(&slots, 4, 1000 * MIB);
        session_summary_add(&s, text, &slots);
        assert_in_range(session_summary_suggest_cpu(&s), 0, 4);
        assert_in_range(session_summary_suggest_mem(&s), 0, 1000 * MIB);
        assert_true(s.gpu_mem_asked >= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_kernel),
        cmocka_unit_test(nothing_was_measured),
        cmocka_unit_test(sizes),
        cmocka_unit_test(several_kernels),
        cmocka_unit_test(values_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
