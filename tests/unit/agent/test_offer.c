/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a machine each of several agents offers, and who has it already. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/resources/claims.h"
#include "agent/resources/resources.h"
#include "agent/resources/offer.h"
#include "base/fs.h"

#define MEM_ALIGN (INT64_C(16) << 20)

/* The texts are only read. */
static struct conf_list list_of(const char *const *items, size_t count)
{
    return (struct conf_list){ .items = (char **)(uintptr_t)items, .count = count };
}

/* ---- equal parts ---- */

static struct offer equal_part(const char *text)
{
    char mode[] = "auto-split";
    AQ_CLEANUP(aq_freep) char *part = strdup(text);
    struct settings settings = { .offer_mode = mode, .offer_part = part };
    struct aq_error err = { 0 };
    struct offer offer;

    assert_row(offer_read(&settings, &offer, &err) == 0, "%s", err.text);
    return offer;
}

/* What the K-th of N agents offers of a slot of 'count' devices of 'each'. */
static int64_t part_of(const char *part, const struct alloc_slot *slot, size_t count, int64_t each,
                       char map[16])
{
    struct offer offer = equal_part(part);
    struct alloc_device devices[16];
    struct aq_error err = { 0 };
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        devices[i] = (struct alloc_device){ .id = "x", .slot_name = slot->name, .capacity = each };
    assert_int_equal(offer_apply(&offer, slot, 1, MEM_ALIGN, devices, count, &err), 0);
    for (size_t i = 0; i < count; i++) {
        sum += devices[i].capacity;
        map[i] = devices[i].capacity ? 'x' : '.';
    }
    map[count] = '\0';
    return sum;
}

static void test_equal_parts(void **state)
{
    static const struct alloc_slot whole = { .name = "cuda.device", .type = SLOT_COUNT },
                                   shares = { .name = "cuda.shares",
                                              .type = SLOT_COUNT,
                                              .quantum = 100000 },
                                   slices = { .name = "cuda.device:10g-mig", .type = SLOT_UNIQUE },
                                   cores = { .name = "cpu", .type = SLOT_COUNT },
                                   memory = { .name = "mem", .type = SLOT_BYTES };
    static const struct {
        const char *part;
        const struct alloc_slot *slot;
        size_t count;
        int64_t each, sum;
        const char *map;
    } rows[] = {
        { "1/3", &whole, 5, AMOUNT_ONE, 2 * AMOUNT_ONE, "xx..." },
        { "2/3", &whole, 5, AMOUNT_ONE, 2 * AMOUNT_ONE, "..xx." },
        { "3/3", &whole, 5, AMOUNT_ONE, AMOUNT_ONE, "....x" },
        { "2/2", &slices, 3, AMOUNT_ONE, AMOUNT_ONE, "..x" },
        { "3/3", &whole, 2, AMOUNT_ONE, 0, ".." },
        /* cores that are offered twice, of which two are reserved already */
        { "1/2", &cores, 6, 2 * AMOUNT_ONE, 6 * AMOUNT_ONE, "xxx..." },
        { "2/2", &cores, 6, 2 * AMOUNT_ONE, 6 * AMOUNT_ONE, "...xxx" },
        { "1/2", &shares, 1, AMOUNT_ONE, AMOUNT_ONE / 2, "x" },
        { "1/3", &shares, 1, AMOUNT_ONE, 400000, "x" },
        { "3/3", &shares, 2, AMOUNT_ONE, 600000, "xx" },
        { "2/2", &memory, 1, INT64_C(1000) << 20, INT64_C(496) << 20, "x" },
        { "1/1", &memory, 1, INT64_C(1000) << 20, INT64_C(1000) << 20, "x" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        char map[16];
        int64_t sum = part_of(rows[i].part, rows[i].slot, rows[i].count, rows[i].each, map);

        assert_row(sum == rows[i].sum && strcmp(map, rows[i].map) == 0, "%zu: %lld %s", i,
                   (long long)sum, map);
    }
}

/* Whatever is divided, all parts together are all of it. */
static void test_parts_are_the_whole(void **state)
{
    const struct alloc_slot whole = { .name = "cuda.device", .type = SLOT_COUNT }, shares = {
        .name = "cuda.shares", .type = SLOT_COUNT, .quantum = 10000
    };

    (void)state;
    for (int64_t parts = 1; parts <= 9; parts++)
        for (size_t count = 0; count <= 12; count++) {
            int64_t sum = 0, share_sum = 0;

            for (int64_t part = 1; part <= parts; part++) {
                char text[16], map[16];

                (void)snprintf(text, sizeof(text), "%lld/%lld", (long long)part, (long long)parts);
                sum += part_of(text, &whole, count, AMOUNT_ONE, map);
                share_sum += part_of(text, &shares, count, 2 * AMOUNT_ONE, map);
            }
            assert_int_equal(sum, (int64_t)count * AMOUNT_ONE);
            assert_int_equal(share_sum, (int64_t)count * 2 * AMOUNT_ONE);
        }
}

/* ---- chosen cores and devices ---- */

static void test_chosen(void **state)
{
    static const char *const cores[] = { "0-3", "8" };
    static const char *const names[] = { "cuda.shares/GPU-2=0.5", "cuda/GPU-1*", "rocm/*" };
    static const struct alloc_slot slots[] = {
        { .name = "cuda.shares", .type = SLOT_COUNT, .quantum = 100000 },
        { .name = "rocm.device", .type = SLOT_COUNT },
        { .name = "cudax.device", .type = SLOT_COUNT },
        { .name = "mem", .type = SLOT_BYTES },
    };
    char mode[] = "exclusive";
    struct alloc_device devices[] = {
        { .id = "GPU-1", .slot_name = "cuda.shares", .capacity = AMOUNT_ONE },
        { .id = "GPU-12", .slot_name = "cuda.shares", .capacity = AMOUNT_ONE },
        { .id = "GPU-2", .slot_name = "cuda.shares", .capacity = AMOUNT_ONE },
        { .id = "GPU-3", .slot_name = "cuda.shares", .capacity = AMOUNT_ONE },
        { .id = "a1", .slot_name = "rocm.device", .capacity = AMOUNT_ONE },
        { .id = "GPU-1", .slot_name = "cudax.device", .capacity = AMOUNT_ONE },
        { .id = "root", .slot_name = "mem", .capacity = 1000 },
    };
    static const int64_t wanted[] = {
        AMOUNT_ONE, AMOUNT_ONE, AMOUNT_ONE / 2, 0, AMOUNT_ONE, 0, 1000
    };
    struct settings settings = { .offer_mode = mode,
                                 .offer_cores = list_of(cores, 2),
                                 .offer_devices = list_of(names, 3) };
    struct offer offer;

    (void)state;
    assert_int_equal(offer_read(&settings, &offer, NULL), 0);
    assert_true(offer_has_core(&offer, 0) && offer_has_core(&offer, 3)
                && offer_has_core(&offer, 8));
    assert_false(offer_has_core(&offer, 4) || offer_has_core(&offer, 9));
    assert_int_equal(
        offer_apply(&offer, slots, AQ_COUNT(slots), MEM_ALIGN, devices, AQ_COUNT(devices), NULL),
        0);
    for (size_t i = 0; i < AQ_COUNT(devices); i++)
        assert_int_equal(devices[i].capacity, wanted[i]);
}

static void test_wrong_settings(void **state)
{
    static const struct {
        const char *mode, *part, *core, *device, *field;
    } rows[] = {
        { "half", NULL, NULL, NULL, "resource.allocation-mode" },
        { "auto-split", NULL, NULL, NULL, "resource.part" },
        { "auto-split", "0/2", NULL, NULL, "resource.part" },
        { "auto-split", "3/2", NULL, NULL, "resource.part" },
        { "auto-split", "1/2x", NULL, NULL, "resource.part" },
        { "auto-split", "1/1000", NULL, NULL, "resource.part" },
        { "exclusive", "1/2", NULL, NULL, "resource.part" },
        { "exclusive", NULL, "3-1", NULL, "resource.cores" },
        { "exclusive", NULL, "-1", NULL, "resource.cores" },
        { "exclusive", NULL, "5000", NULL, "resource.cores" },
        { "shared", NULL, "x", NULL, "resource.cores" },
        { "exclusive", NULL, NULL, "GPU-1", "resource.devices" },
        { "exclusive", NULL, NULL, "/GPU-1", "resource.devices" },
        { "exclusive", NULL, NULL, "cuda/", "resource.devices" },
        { "exclusive", NULL, NULL, "cuda/=1", "resource.devices" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct settings settings = {
            .offer_mode = (char *)(uintptr_t)rows[i].mode,
            .offer_part = (char *)(uintptr_t)rows[i].part,
            .offer_cores = list_of(&rows[i].core, rows[i].core != NULL),
            .offer_devices = list_of(&rows[i].device, rows[i].device != NULL),
        };
        struct aq_error err = { 0 };
        struct offer offer;

        assert_row(offer_read(&settings, &offer, &err) == -EINVAL
                       && strcmp(err.field, rows[i].field) == 0,
                   "%zu: %s", i, err.text);
    }
}

static void test_wrong_amounts(void **state)
{
    static const struct alloc_slot slots[] = {
        { .name = "cuda.shares", .type = SLOT_COUNT, .quantum = 100000 },
        { .name = "cuda.device", .type = SLOT_COUNT },
        { .name = "cuda.device:1g-mig", .type = SLOT_UNIQUE },
    };
    static const char *const texts[] = {
        "cuda.shares/a=0.25", "cuda.shares/a=1.1", "cuda.shares/a=0",   "cuda.shares/a=-1",
        "cuda.shares/a=",     "cuda.shares/a=x",   "cuda.device/b=0.5", "cuda.device:1g-mig/c=1",
    };
    char mode[] = "exclusive";

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        struct settings settings = { .offer_mode = mode, .offer_devices = list_of(&texts[i], 1) };
        struct alloc_device devices[] = {
            { .id = "a", .slot_name = "cuda.shares", .capacity = AMOUNT_ONE },
            { .id = "b", .slot_name = "cuda.device", .capacity = AMOUNT_ONE },
            { .id = "c", .slot_name = "cuda.device:1g-mig", .capacity = AMOUNT_ONE },
        };
        struct aq_error err = { 0 };
        struct offer offer;

        assert_int_equal(offer_read(&settings, &offer, NULL), 0);
        assert_row(
            offer_apply(&offer, slots, AQ_COUNT(slots), MEM_ALIGN, devices, AQ_COUNT(devices), &err)
                    == -EINVAL
                && strcmp(err.field, "resource.devices") == 0,
            "%s: %s", texts[i], err.text);
    }
}

/* ---- claims ---- */

struct machine {
    char folder[64];
    char *state[3]; /* of each agent */
    struct claims *claims[3];
};

static int set_up(void **state)
{
    struct machine *m = calloc(1, sizeof(*m));

    assert_non_null(m);
    strcpy(m->folder, "/tmp/aliquot-claims-XXXXXX");
    assert_non_null(mkdtemp(m->folder));
    for (size_t i = 0; i < AQ_COUNT(m->state); i++) {
        char name[] = { (char)('a' + i), '\0' };

        m->state[i] = aq_format("%s/%s", m->folder, name);
        assert_int_equal(mkdir(m->state[i], 0700), 0);
        assert_int_equal(claims_new(m->folder, name, m->state[i], &m->claims[i], NULL), 0);
        assert_string_equal(claims_get_note(m->claims[i]), "");
    }
    *state = m;
    return 0;
}

static int tear_down(void **state)
{
    struct machine *m = *state;

    for (size_t i = 0; i < AQ_COUNT(m->state); i++) {
        claims_free(m->claims[i]);
        free(m->state[i]);
    }
    assert_int_equal(fs_remove_tree(AT_FDCWD, m->folder, NULL), 0);
    free(m);
    return 0;
}

static const int low[] = { 0, 1, 2, 3 }, high[] = { 4, 5 }, middle[] = { 3, 4 };

static struct claim claim_of(const int *cores, size_t count, int64_t memory)
{
    return (struct claim){ .cores = cores,
                           .core_count = count,
                           .memory_bytes = memory << 30,
                           .machine_bytes = INT64_C(8) << 30 };
}

/* Refused because of agent 'a', naming what. */
static void expect_refusal(struct machine *m, const struct claim *claim, const char *what)
{
    struct aq_error err = { 0 };

    assert_int_equal(claims_set(m->claims[1], claim, false, &err), -EBUSY);
    assert_row(strstr(err.text, "'a'") && strstr(err.text, what), "%s", err.text);
}

static void test_cores_and_memory(void **state)
{
    struct machine *m = *state;
    struct claim first = claim_of(low, 4, 5), second = claim_of(high, 2, 3);
    struct claim third = claim_of(middle, 2, 1), fourth = claim_of(high, 2, 4);

    assert_int_equal(claims_set(m->claims[0], &first, false, NULL), 0);
    expect_refusal(m, &third, "core 3");
    expect_refusal(m, &fourth, "5120");
    assert_int_equal(claims_set(m->claims[1], &second, false, NULL), 0);
    assert_int_equal(claims_set(m->claims[1], &second, false, NULL), 0); /* again */
    first.core_count = 3;
    assert_int_equal(claims_set(m->claims[0], &first, false, NULL), 0);
    third.core_count = 1;
    third.memory_bytes = 0;
    assert_int_equal(claims_set(m->claims[2], &third, false, NULL), 0); /* core 3 is free now */
}

static void test_devices(void **state)
{
    static const struct claim_device mine[] = {
        { "cuda.shares", "GPU-1", 500000, AMOUNT_ONE },
        { "cuda.device", "GPU-2", AMOUNT_ONE, AMOUNT_ONE },
    };
    static const struct {
        struct claim_device device;
        const char *rejected;
    } rows[] = {
        { { "cuda.shares", "GPU-1", 500000, AMOUNT_ONE }, NULL },
        { { "cuda.shares", "GPU-1", 600000, AMOUNT_ONE }, "GPU-1" },
        { { "cuda.device", "GPU-1", AMOUNT_ONE, AMOUNT_ONE }, "GPU-1" }, /* the same hardware */
        { { "cuda.device", "GPU-2", AMOUNT_ONE, AMOUNT_ONE }, "GPU-2" },
        { { "cuda.device", "GPU-3", AMOUNT_ONE, AMOUNT_ONE }, NULL },
        { { "rocm.device", "GPU-2", AMOUNT_ONE, AMOUNT_ONE }, NULL }, /* another kind */
    };
    struct machine *m = *state;
    struct claim first = { .devices = mine, .device_count = 2 };

    assert_int_equal(claims_set(m->claims[0], &first, false, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct claim claim = { .devices = &rows[i].device, .device_count = 1 };

        if (rows[i].rejected)
            expect_refusal(m, &claim, rows[i].rejected);
        else
            assert_int_equal(claims_set(m->claims[1], &claim, false, NULL), 0);
    }
}

static void test_shared(void **state)
{
    struct machine *m = *state;
    struct claim shared = claim_of(low, 4, 8), own = claim_of(low, 1, 1);

    shared.is_shared = true;
    assert_int_equal(claims_set(m->claims[0], &shared, false, NULL), 0);
    assert_int_equal(claims_set(m->claims[2], &shared, false, NULL), 0);
    assert_int_equal(claims_set(m->claims[1], &own, false, NULL), -EBUSY);
}

/* What the kernels of a dead agent hold stays claimed, also for its next process. */
static void test_dead_agents(void **state)
{
    static const char kernel[] = "kernels/0192d3a4-5b6c-7d8e-9fa0-b1c2d3e4f5a6";
    struct machine *m = *state;
    struct claim first = claim_of(low, 4, 5), less = claim_of(low, 1, 1),
                 third = claim_of(middle, 2, 1);
    AQ_CLEANUP(aq_freep) char *folder = aq_format("%s/%s", m->state[0], kernel);

    assert_int_equal(fs_mkdirs(folder, 0700, NULL), 0);
    assert_int_equal(claims_set(m->claims[0], &first, false, NULL), 0);
    claims_free(m->claims[0]);
    expect_refusal(m, &third, "core 3");
    assert_int_equal(claims_new(m->folder, "a", m->state[0], &m->claims[0], NULL), 0);
    assert_int_equal(claims_set(m->claims[0], &less, true, NULL), 0);
    expect_refusal(m, &third, "core 3"); /* nothing is known of its kernels yet */
    assert_int_equal(claims_set(m->claims[0], &less, false, NULL), 0);
    assert_int_equal(claims_set(m->claims[1], &third, false, NULL), 0);
    claims_free(m->claims[0]);
    m->claims[0] = NULL;
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(claims_set(m->claims[2], &less, false, NULL), 0); /* it has none any more */
}

static void test_unreadable_claims(void **state)
{
    struct machine *m = *state;
    struct claim first = claim_of(low, 4, 5);
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/claims/0123456789abcdef.json", m->folder);

    assert_int_equal(fs_write_quick(AT_FDCWD, path, "{\"cores\":[1", 11, 0600, NULL), 0);
    assert_int_equal(claims_set(m->claims[0], &first, false, NULL), 0);
    assert_int_equal(access(path, F_OK), -1); /* nobody's */
}

static void test_no_folder(void **state)
{
    struct machine *m = *state;
    struct claim first = claim_of(low, 4, 5);
    struct claims *claims;

    assert_int_equal(claims_new("/dev/null", "a", m->state[0], &claims, NULL), 0);
    assert_non_null(strstr(claims_get_note(claims), "/dev/null/claims"));
    assert_int_equal(claims_set(claims, &first, false, NULL), 0);
    claims_free(claims);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_parts),
        cmocka_unit_test(test_parts_are_the_whole),
        cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_wrong_settings),
        cmocka_unit_test(test_wrong_amounts),
        cmocka_unit_test_setup_teardown(test_cores_and_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_devices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dead_agents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unreadable_claims, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_folder, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
