/* SPDX-License-Identifier: Apache-2.0 */
/* Which card a container's ids are of, whatever the kubelet asks first. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "k8s/plugin/placement.h"

#define M RESOURCE_MEMORY
#define C RESOURCE_COMPUTE
#define SEC INT64_C(1000000)

struct scene {
    struct card cards[3];
    struct placement placement;
    bool taken[3][2][100]; /* the kubelet's books */
    const struct node_container *waiting[3];
    size_t waiting_count;
    const char *partner;
    bool next_is_asked_only; /* no Allocate follows */
    int64_t now;
};

static void scene_init(struct scene *s, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t memory[3] = { a, b, c };

    memset(s, 0, sizeof(*s));
    for (size_t i = 0; i < 3; i++) {
        s->cards[i] = (struct card){ .is_healthy = true, .units = { memory[i], 100 } };
        (void)snprintf(s->cards[i].id, sizeof(s->cards[i].id), "GPU_%zu", i);
        memcpy(s->cards[i].free, s->cards[i].units, sizeof(s->cards[i].free));
    }
    s->placement.cards = (struct cards){ .items = s->cards, .count = 3 };
    s->now = 100 * SEC;
}

static char *new_id(const struct scene *s, size_t card, uint32_t unit)
{
    char *id = calloc(1, KUBELET_ID_MAX + 1);

    device_id_write(s->cards[card].id, unit, id);
    return id;
}

/* As the kubelet does: prefer of what is free, then Allocate. The card, or -errno. */
static int take(struct scene *s, enum resource_kind kind, int32_t size)
{
    char *ids[300], *chosen[300];
    struct placement_wish wish = { .available = ids,
                                   .size = size,
                                   .waiting = s->waiting,
                                   .waiting_count = s->waiting_count,
                                   .partner = s->partner };
    const struct card *card = &s->cards[0];
    struct aq_error err = { 0 };
    int r;

    for (size_t i = 0; i < 3; i++)
        for (uint32_t unit = 0; unit < s->cards[i].units[kind]; unit++)
            if (!s->taken[i][kind][unit])
                ids[wish.available_count++] = new_id(s, i, unit);
    r = placement_prefer(&s->placement, kind, &wish, s->now, chosen, &err);
    if (r == 0 && !s->next_is_asked_only)
        r = placement_accept(&s->placement, kind, chosen, (size_t)size, s->now, &card, &err);
    for (int32_t i = 0; r == 0 && i < size; i++) {
        size_t len;
        uint32_t unit;

        assert_true(device_id_read(chosen[i], &len, &unit));
        s->taken[card - s->cards][kind][unit] = true;
    }
    for (size_t i = 0; i < wish.available_count; i++)
        free(ids[i]);
    return r < 0 ? r : (int)(card - s->cards);
}

static void test_the_second_resource_follows_the_first(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, 8, 16, 24);
    assert_int_equal(take(&s, M, 16), 1); /* the smallest that is large enough */
    assert_int_equal(take(&s, C, 50), 1);
    assert_int_equal(take(&s, C, 10), 0); /* card 1 has no memory for it */
    assert_int_equal(take(&s, M, 2), 0);
    s.now += PLACEMENT_PAIR_USEC + 1;
    assert_int_equal(take(&s, M, 24), 2);
    assert_int_equal(take(&s, C, 100), 2);
}

static void test_what_has_no_room_on_the_card_of_the_last_is_doubtful(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, 8, 16, 24);
    assert_int_equal(take(&s, C, 10), 0);
    assert_int_equal(take(&s, M, 9), -EAGAIN);
    placement_settle(&s.placement, "GPU_1_1", PLACEMENT_ALL);
    assert_int_equal(take(&s, M, 9), -EAGAIN);
    placement_settle(&s.placement, s.placement.id, PLACEMENT_UNKNOWN);
    assert_int_equal(take(&s, M, 9), -EXDEV); /* it may be the same container's */
    placement_settle(&s.placement, s.placement.id, PLACEMENT_ONE);
    assert_int_equal(take(&s, M, 9), -EXDEV);
    placement_settle(&s.placement, s.placement.id,
                     PLACEMENT_ALL); /* of which the other call came before */
    assert_int_equal(take(&s, M, 9), 1);
    assert_int_equal(take(&s, C, 10), 1);

    /* memory alone, then compute of the next container, which looks like its partner */
    scene_init(&s, 8, 16, 24);
    assert_int_equal(take(&s, M, 5), 0);
    assert_int_equal(take(&s, C, 10), 0);
    assert_int_equal(take(&s, M, 4), -EAGAIN);
    placement_settle(&s.placement, s.placement.id, PLACEMENT_ONE);
    assert_int_equal(take(&s, M, 4), -EXDEV);
    assert_int_equal(take(&s, M, 3), 0);
    /* a pair that is one, as far as is known */
    assert_int_equal(take(&s, C, 95), -EAGAIN);
    placement_settle(&s.placement, s.placement.id, PLACEMENT_ALL);
    assert_int_equal(take(&s, C, 95), 1);
    placement_forget(&s.placement);
    assert_int_equal(take(&s, M, 24), 2);
}

static void test_a_card_that_has_none_of_the_other_is_the_last_choice(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, 8, 16, 24);
    assert_int_equal(take(&s, M, 1), 0);
    assert_int_equal(take(&s, C, 100), 0);
    assert_int_equal(take(&s, M, 4), 0); /* as the container's whose compute was the last */
    s.now += PLACEMENT_PAIR_USEC + 1;
    assert_int_equal(take(&s, M, 3), 1); /* card 0 has 3, and no compute for it */
    assert_int_equal(take(&s, C, 50), 1);
}

static void test_memory_alone_is_another_container_s_next(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, 8, 8, 8);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(take(&s, M, 5), i);
        assert_int_equal(take(&s, M, 3), i);
    }
    /* later its compute can be anywhere, right after only where the last memory is */
    s.now += PLACEMENT_PAIR_USEC + 1;
    assert_int_equal(take(&s, C, 60), 0);
    assert_int_equal(take(&s, C, 60), 1);
}

/* The card for a resource that is asked for first, where these may be meant. */
static int take_first(struct scene *s, enum resource_kind kind, int32_t size,
                      const struct node_container *a, const struct node_container *b)
{
    int r;

    s->waiting[0] = a;
    s->waiting[1] = b;
    s->waiting_count = b ? 2 : 1;
    placement_forget(&s->placement);
    r = take(s, kind, size);
    placement_forget(&s->placement);
    s->waiting_count = 0;
    return r;
}

static void test_a_card_has_both_for_those_that_may_be_meant(void **state)
{
    const struct node_container small = { .memory = 2, .compute = 30 };
    const struct node_container large = { .memory = 9, .compute = 30 };
    const struct node_container alone = { .memory = 2 };
    const struct node_container named = { .memory = 2, .compute = 30, .card = "GPU_2" };
    const struct node_container no_room = { .memory = 9, .compute = 30, .card = "GPU_0" };
    const struct node_container too_large = { .memory = 99, .compute = 30, .card = "GPU_1" };
    struct scene s;

    (void)state;
    scene_init(&s, 8, 16, 24);
    assert_int_equal(take_first(&s, C, 30, &small, NULL), 0);
    assert_int_equal(take_first(&s, C, 30, &large, NULL), 1);
    assert_int_equal(take_first(&s, C, 30, &small, &large), 1); /* which does for both */
    assert_int_equal(take_first(&s, C, 30, &small, &named), 2);
    assert_int_equal(take_first(&s, C, 30, &no_room, NULL), 1);   /* not the one named */
    assert_int_equal(take_first(&s, C, 30, &too_large, NULL), 0); /* GPU_1 has 10 of compute left */
    scene_init(&s, 8, 16, 24);
    assert_int_equal(take_first(&s, C, 30, &too_large, &small), 1); /* as nothing else is known */

    scene_init(&s, 8, 16, 24);
    assert_int_equal(take(&s, C, 80), 0);
    assert_int_equal(take_first(&s, M, 2, &small, NULL), 1);
    assert_int_equal(take_first(&s, M, 2, &alone, NULL), 0);
    assert_int_equal(take_first(&s, M, 2, &alone, &small), 1);
    /* the first counts where no card does for both */
    assert_int_equal(take(&s, C, 80), 1);
    assert_int_equal(take_first(&s, M, 2, &named, &small), 2);
}

/* The kubelet asks for a container that is known, which has the other resource on 'partner' ("": on none). */
static int take_known(struct scene *s, enum resource_kind kind, int32_t size,
                      const struct node_container *of, const char *partner)
{
    int r;

    s->waiting[0] = of;
    s->waiting_count = 1;
    s->partner = partner;
    r = take(s, kind, size);
    s->waiting_count = 0;
    s->partner = NULL;
    return r;
}

static void test_a_known_container_is_not_taken_for_the_last(void **state)
{
    const struct node_container named = { .memory = 5, .compute = 50, .card = "GPU_2" };
    const struct node_container other = { .memory = 5, .compute = 50, .card = "GPU_1" };
    const struct node_container alone = { .compute = 10, .card = "GPU_0" };
    struct scene s;

    (void)state;
    scene_init(&s, 8, 8, 8);
    assert_int_equal(take_known(&s, C, 50, &named, ""), 2);
    assert_int_equal(take_known(&s, M, 5, &named, "GPU_2"), 2);
    assert_int_equal(take_known(&s, M, 5, &other, ""), 1);
    /* that one was not admitted: what comes next is another's */
    assert_int_equal(take_known(&s, C, 10, &alone, ""), 0);
    assert_int_equal(take_known(&s, M, 5, &other, "GPU_1"), -ENOSPC); /* 3 are left there */
    assert_int_equal(take_known(&s, M, 5, &other, ""), 0);
}

static void test_a_kubelet_that_takes_another_card_than_the_partner_s_is_refused(void **state)
{
    const struct node_container of = { .memory = 5, .compute = 50 };
    char id[] = "GPU_1_0", *ids[] = { id };
    const struct card *card;
    struct aq_error err = { 0 };
    struct scene s;

    (void)state;
    scene_init(&s, 8, 8, 8);
    assert_int_equal(take_known(&s, C, 50, &of, ""), 0);
    s.next_is_asked_only = true;
    assert_int_equal(take_known(&s, M, 5, &of, "GPU_0"), 0);
    assert_int_equal(placement_accept(&s.placement, M, ids, 1, s.now, &card, &err), -EXDEV);
    assert_non_null(strstr(err.text, "compute on card GPU_0 and memory on card GPU_1"));
}

static void test_what_is_to_be_kept_decides(void **state)
{
    struct scene s;
    char one[] = "GPU_2_7", two[] = "GPU_2_9", three[] = "GPU_1_0", *must[] = { one, two },
         *available[] = { three, two, one }, *chosen[3];
    struct placement_wish wish = {
        .available = available, .available_count = 3, .must = must, .must_count = 1, .size = 2
    };
    struct aq_error err = { 0 };

    (void)state;
    scene_init(&s, 8, 8, 16);
    assert_int_equal(placement_prefer(&s.placement, M, &wish, s.now, chosen, &err), 0);
    assert_ptr_equal(chosen[0], one);
    assert_ptr_equal(chosen[1], two);
    wish.size = 3;
    assert_int_equal(placement_prefer(&s.placement, M, &wish, s.now, chosen, &err), -ENOSPC);
    must[1] = three;
    wish.must_count = 2;
    assert_int_equal(placement_prefer(&s.placement, M, &wish, s.now, chosen, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "two cards, GPU_2 and GPU_1"));
    wish.size = 1;
    wish.must_count = 1;
    must[0] = (char[]){ "x" };
    assert_int_equal(placement_prefer(&s.placement, M, &wish, s.now, chosen, &err), -EINVAL);
}

static void test_ids(void **state)
{
    static const struct {
        const char *id;
        bool is_good;
    } rows[] = {
        { "GPU_0", true },
        { "GPU_9999", true },
        { "a_b_7", true },
        { "GPU_10000", false },
        { "GPU_", false },
        { "_1", false },
        { "", false },
        { "GPU", false },
        { "GPU_01", false },
        { "GPU_+1", false },
        { "GPU_1 ", false },
        { "GPU_00", false },
        { "0123456789012345678901234567890123456789012345678901234567_1", true },
        { "01234567890123456789012345678901234567890123456789012345678_1", false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        size_t len;
        uint32_t unit;

        assert_row(device_id_read(rows[i].id, &len, &unit) == rows[i].is_good, "%s", rows[i].id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_second_resource_follows_the_first),
        cmocka_unit_test(test_what_has_no_room_on_the_card_of_the_last_is_doubtful),
        cmocka_unit_test(test_a_card_that_has_none_of_the_other_is_the_last_choice),
        cmocka_unit_test(test_memory_alone_is_another_container_s_next),
        cmocka_unit_test(test_a_card_has_both_for_those_that_may_be_meant),
        cmocka_unit_test(test_a_known_container_is_not_taken_for_the_last),
        cmocka_unit_test(test_a_kubelet_that_takes_another_card_than_the_partner_s_is_refused),
        cmocka_unit_test(test_what_is_to_be_kept_decides),
        cmocka_unit_test(test_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
