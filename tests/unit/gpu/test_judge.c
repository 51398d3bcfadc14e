/* Who is found out, when, and who is not. */
#include "testing.h"

#include <string.h>

#include "gpu/charge.h"
#include "gpuhost/judge.h"
#include "gpuhost/share_private.h"

#define MIB ((uint64_t)1 << 20)

static const uint8_t uuid[16] = { 0x51, 0x3a, 0x5f, 0x0e };

struct world {
    struct gpu_share *share;
    struct gpu_judge judge;
};

/* A slice of 2 GiB with the process 100 in slot 5. */
static void begin(struct world *w)
{
    struct gpu_grant grant = { .memory_bytes = 2048 * MIB, .share = 500000 };
    struct aq_error err = { 0 };

    *w = (struct world){ .share = NULL };
    memcpy(grant.uuid, uuid, sizeof(uuid));
    assert_int_equal(gpu_share_new(&grant, 1, &w->share, &err), 0);
    gpu_share_limits(w->share)->owners[5].host_pid = 100;
}

static void charge(struct world *w, uint64_t mib)
{
    assert_true(charge_reserve(gpu_share_usage(w->share), 5, 0, mib / 2, UINT64_MAX >> 40));
}

static bool is_of_container(pid_t pid, void *data)
{
    (void)data;
    return pid >= 100 && pid < 200;
}

/* One look at processes 'pids' that hold 'mib'; how many findings, the first into *ret. */
static size_t look(struct world *w, size_t count, const int pids[], const uint64_t mib[],
                   struct gpu_finding *ret)
{
    struct gpu_use uses[4] = { { .pid = 0 } };
    struct gpu_finding findings[4] = { { .pid = 0 } };
    size_t found;

    for (size_t i = 0; i < count; i++) {
        uses[i] = (struct gpu_use){ .pid = pids[i], .bytes = mib[i] * MIB };
        memcpy(uses[i].uuid, uuid, sizeof(uuid));
    }
    found = gpu_judge_look(&w->judge, w->share, uses, count, is_of_container, NULL, findings, 4);
    *ret = findings[0];
    return found;
}

static size_t look_at_one(struct world *w, int pid, uint64_t mib, struct gpu_finding *ret)
{
    return look(w, 1, &pid, &mib, ret);
}

static void test_unregistered(void **state)
{
    struct gpu_finding finding;
    struct world w;

    (void)state;
    begin(&w);
    assert_int_equal(look_at_one(&w, 250, 1000, &finding), 0); /* of nobody's concern */
    assert_int_equal(look_at_one(&w, 101, 10, &finding), 1);   /* at once */
    assert_int_equal(finding.kind, GPU_UNREGISTERED);
    assert_int_equal(finding.pid, 101);
    assert_int_equal(look_at_one(&w, 101, 10, &finding), 0); /* told once */
    assert_int_equal(look_at_one(&w, 102, 10, &finding), 1); /* another */
    gpu_share_free(w.share);
}

static void test_understated(void **state)
{
    struct gpu_finding finding;
    struct world w;

    (void)state;
    begin(&w);
    charge(&w, 100);
    for (int i = 0; i < 5; i++)
        assert_int_equal(look_at_one(&w, 100, 164, &finding), 0); /* what drivers round */
    assert_int_equal(look_at_one(&w, 100, 165, &finding), 0);
    assert_int_equal(look_at_one(&w, 100, 165, &finding), 0);
    assert_int_equal(look_at_one(&w, 100, 100, &finding), 0); /* it was a moment */
    assert_int_equal(look_at_one(&w, 100, 500, &finding), 0);
    assert_int_equal(look_at_one(&w, 100, 500, &finding), 0);
    assert_int_equal(look_at_one(&w, 100, 500, &finding), 1);
    assert_int_equal(finding.kind, GPU_UNDERSTATED);
    assert_false(gpu_finding_is_breach(&finding));
    assert_int_equal(finding.used_bytes, 500 * MIB);
    assert_int_equal(finding.allowed_bytes, 100 * MIB);
    gpu_share_free(w.share);
}

/* The driver's list is old: the program takes 500 MiB and gives them back on and on. */
static void test_busy_allocator(void **state)
{
    struct gpu_finding finding;
    struct world w;

    (void)state;
    begin(&w);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(look_at_one(&w, 100, 500, &finding), 0);
        charge(&w, 500);
        gpu_judge_sample(&w.judge, w.share);
        charge_release(gpu_share_usage(w.share), 5, 0, 250);
    }
    gpu_share_free(w.share);
}

/* The region says that all is well, because the container has written that. */
static void test_over(void **state)
{
    const int pids[] = { 100, 101 };
    const uint64_t mib[] = { 1500, 700 };
    struct gpu_finding finding;
    struct world w;

    (void)state;
    begin(&w);
    gpu_share_limits(w.share)->owners[6].host_pid = 101;
    gpu_share_usage(w.share)->slots[5].devices[0].state = (uint64_t)10000 << AQ_GPU_CHARGE_SEQ_BITS;
    gpu_share_usage(w.share)->slots[6].devices[0].state = (uint64_t)10000 << AQ_GPU_CHARGE_SEQ_BITS;
    assert_int_equal(look(&w, 2, pids, mib, &finding), 0);
    assert_int_equal(look(&w, 2, pids, mib, &finding), 0);
    assert_int_equal(look(&w, 2, pids, mib, &finding), 1);
    assert_int_equal(finding.kind, GPU_OVER);
    assert_true(gpu_finding_is_breach(&finding));
    assert_int_equal(finding.pid, 100);
    assert_int_equal(finding.used_bytes, 2200 * MIB);
    assert_int_equal(finding.allowed_bytes, 2048 * MIB);
    assert_int_equal(look(&w, 2, pids, mib, &finding), 0);
    gpu_share_free(w.share);
}

/* Who was granted more before keeps it, and no more than that. */
static void test_smaller_slice(void **state)
{
    struct gpu_grant grant = { .memory_bytes = 512 * MIB, .share = 500000 };
    struct gpu_finding finding;
    struct world w;

    (void)state;
    begin(&w);
    memcpy(grant.uuid, uuid, sizeof(uuid));
    charge(&w, 1800);
    assert_int_equal(gpu_share_set(w.share, &grant, NULL), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(look_at_one(&w, 100, 1800, &finding), 0);
    assert_int_equal(look_at_one(&w, 100, 700, &finding), 0); /* it gave some back */
    for (int i = 0; i < 2; i++)
        assert_int_equal(look_at_one(&w, 100, 900, &finding), 0);
    assert_int_equal(look_at_one(&w, 100, 900, &finding), 1);
    assert_int_equal(finding.kind, GPU_OVER);
    assert_int_equal(finding.allowed_bytes, 700 * MIB);
    assert_int_equal(look_at_one(&w, 100, 400, &finding), 0);
    assert_int_equal(gpu_share_limits(w.share)->devices[0].held_bytes, 0);
    gpu_share_free(w.share);
}

static void test_text(void **state)
{
    static const struct {
        struct gpu_finding finding;
        const char *text;
    } rows[] = {
        { { GPU_UNREGISTERED, 17, 0, 1088 * MIB, 0 },
          "process 17 uses GPU-513a5f0e past its limits (1088 MiB of device memory)" },
        { { GPU_UNDERSTATED, 17, 0, 500 * MIB, 100 * MIB },
          "process 17 holds more of GPU-513a5f0e than it is charged (500 MiB, charged 100)" },
        { { GPU_OVER, 17, 0, 2200 * MIB, 2048 * MIB },
          "all processes hold 2200 MiB of GPU-513a5f0e, more than the 2048 granted (process 17 "
          "most of it)" },
    };
    struct world w;
    char text[200];

    (void)state;
    begin(&w);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        gpu_finding_write(&rows[i].finding, w.share, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
    }
    gpu_finding_write(&rows[2].finding, w.share, text, 12);
    assert_string_equal(text, "all process");
    gpu_share_free(w.share);
}

/* What one process lends and another has too, the driver may show at both. */
static void test_borrowed(void **state)
{
    const int pids[] = { 100, 101 };
    const uint64_t both[] = { 1500, 1500 }, more[] = { 1500, 1700 };
    struct gpu_finding finding;
    struct world w;
    uint32_t device;
    uint64_t granules;

    (void)state;
    begin(&w);
    gpu_share_limits(w.share)->owners[6].host_pid = 101;
    charge(&w, 1500);
    assert_int_equal(gpu_loans_offer(w.share->loans, 5, 0, 77, 750), 0);
    assert_int_equal(gpu_loans_join(w.share->loans, 6, 77, &device, &granules), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(look(&w, 2, pids, both, &finding), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(look(&w, 2, pids, more, &finding), 0);
    assert_int_equal(look(&w, 2, pids, more, &finding), 1);
    assert_int_equal(finding.kind, GPU_UNDERSTATED);
    assert_int_equal(finding.pid, 101);
    gpu_share_free(w.share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unregistered), cmocka_unit_test(test_understated),
        cmocka_unit_test(test_busy_allocator), cmocka_unit_test(test_over),
        cmocka_unit_test(test_smaller_slice), cmocka_unit_test(test_text),
        cmocka_unit_test(test_borrowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
