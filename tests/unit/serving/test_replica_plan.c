/* SPDX-License-Identifier: Apache-2.0 */
/* Which replicas are created and which end in rolling rollouts: a table of cases, and any rollout by
 * chance.
 */
#include "testing.h"

#include <ctype.h>
#include <string.h>

#include "random.h"
#include "serving/replica_plan.h"

/* Replicas are letters with their numbers from 1: capital ones are of the goal (2), others of
 * revision 1; S starting, R ready, U unhealthy, L leaving. What ends is marked with '-'.
 */
static const struct {
    const char *replicas;
    int64_t wanted;
    const char *after;
    int64_t created;
    const char *why;
} cases[] = {
    { "", 3, "", 3, "a new service" },
    { "S", 3, "S", 2, "those that start count" },
    { "RRR", 3, "RRR", 0, "as many as wanted" },
    { "RL", 2, "RL", 1, "one that leaves does not count" },
    { "RRRR", 2, "RRR-R-", 0, "the newest end" },
    { "RSRU", 2, "RS-RU-", 0, "those that answer stay" },
    { "SRS", 1, "S-RS-", 0, "one that starts ends before one that is ready" },
    { "RRL", 0, "R-R-L", 0, "none" },
    { "rr", 2, "rr", 1, "a rollout begins with one more" },
    { "rrS", 2, "rrS", 0, "and waits for it" },
    { "rrR", 2, "rr-R", 0, "one of the old ones ends when it is ready" },
    { "rlR", 2, "rlR", 0, "the next one waits for the end of it" },
    { "rRR", 2, "r-RR", 0, "the last one" },
    { "ruR", 2, "ru-R", 0, "one that does not answer ends first" },
    { "urU", 2, "urU", 0, "an unhealthy new one replaces nothing" },
    { "rsS", 2, "rs-S", 0, "an old one that was never ready ends at once" },
    { "rrrrR", 2, "rr-r-r-R", 0, "fewer are wanted during a rollout" },
    { "rrR", 4, "rrR", 2, "more are wanted during a rollout" },
    { "rR", 2, "rR", 1, "then it is created" },
    { "r", 1, "r", 1, "of one alone" },
    { "rR", 1, "r-R", 0, "until the other is ready" },
    { "rr", 0, "r-r-", 0, "none of any revision" },
};

static enum replica_stage stage_of(char c)
{
    switch (toupper((unsigned char)c)) {
    case 'R':
        return REPLICA_STAGE_READY;
    case 'U':
        return REPLICA_STAGE_UNHEALTHY;
    case 'L':
        return REPLICA_STAGE_LEAVING;
    default:
        return REPLICA_STAGE_STARTING;
    }
}

/* As the manager does it in a step: count, decide, choose. */
static void step(struct replica_plan *plan, struct rollout_state *state, int64_t wanted)
{
    const struct rollout rollout = rollout_default();
    struct rollout_sample sample = { .goal = wanted };
    struct rollout_actions actions;

    replica_plan_count(plan, &sample.old, &sample.new);
    rollout_decide(&rollout, state, &sample, &actions);
    replica_plan(plan, &actions);
    assert_int_equal(plan->old_created, 0);
}

static void planned(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct replica_plan_item items[16];
        struct replica_plan plan = { .goal = 2, .items = items };
        struct rollout_state rollout = rollout_begin(1, 2, 0);
        char after[40] = "";

        for (const char *c = cases[i].replicas; *c; c++, plan.count++)
            items[plan.count] = (struct replica_plan_item){
                .number = (int64_t)plan.count + 1,
                .revision = isupper((unsigned char)*c) ? 2 : 1,
                .stage = stage_of(*c),
            };
        step(&plan, &rollout, cases[i].wanted);
        for (size_t k = 0; k < plan.count; k++) {
            size_t len = strlen(after);

            (void)snprintf(after + len, sizeof(after) - len, "%c%s", cases[i].replicas[k],
                           items[k].ends ? "-" : "");
        }
        if (plan.new_created != cases[i].created || strcmp(after, cases[i].after) != 0)
            fail_msg("%s: '%s' becomes '%s' and %lld, expected '%s' and %lld", cases[i].why,
                     cases[i].replicas, after, (long long)plan.new_created, cases[i].after,
                     (long long)cases[i].created);
    }
}

#define MANY 64

/* One round of a rollout: the plan is carried out, and some of what can happen happens. */
static void play(struct test_random *random, struct replica_plan *plan, struct rollout_state *state,
                 int64_t wanted, int64_t *next, bool calm)
{
    int64_t ready = 0, left = 0;
    size_t kept = 0;

    for (size_t i = 0; i < plan->count; i++)
        ready += plan->items[i].stage == REPLICA_STAGE_READY;
    step(plan, state, wanted);
    for (size_t i = 0; i < plan->count; i++) {
        struct replica_plan_item *item = &plan->items[i];

        assert_false(item->ends && item->stage == REPLICA_STAGE_LEAVING);
        left += item->stage == REPLICA_STAGE_READY && !item->ends;
        if (item->ends)
            item->stage = REPLICA_STAGE_LEAVING;
    }
    /* What answers stays, as long as it is wanted. */
    assert_true(left >= (ready < wanted ? ready : wanted));
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].stage != REPLICA_STAGE_LEAVING || (!calm && random_below(random, 2)))
            plan->items[kept++] = plan->items[i];
    plan->count = kept;
    for (int64_t i = 0; i < plan->new_created; i++) {
        assert_true(plan->count < MANY);
        plan->items[plan->count++] = (struct replica_plan_item){ .number = (*next)++,
                                                                 .revision = plan->goal };
    }
    for (size_t i = 0; i < plan->count; i++) {
        struct replica_plan_item *item = &plan->items[i];

        if (item->stage == REPLICA_STAGE_LEAVING)
            continue;
        if (calm || random_below(random, 3) == 0)
            item->stage = REPLICA_STAGE_READY;
        else if (item->stage != REPLICA_STAGE_STARTING && random_below(random, 8) == 0)
            item->stage = REPLICA_STAGE_UNHEALTHY;
    }
}

static void any_rollout(void **state)
{
    struct test_random random = random_begin("replica_plan");

    (void)state;
    for (uint64_t n = random_scaled(2000); n > 0; n--) {
        struct replica_plan_item items[MANY];
        struct replica_plan plan = { .goal = 1, .items = items };
        struct rollout_state rollout = { .phase = ROLLOUT_NONE };
        int64_t next = 1, wanted = random_below(&random, 6), goal;

        for (int i = 0; i < 30; i++) {
            if (random_below(&random, 6) == 0)
                wanted = random_below(&random, 6);
            goal = random_below(&random, 6) == 0 ? 1 + random_below(&random, 3) : plan.goal;
            if (goal != plan.goal)
                rollout = rollout_begin(plan.goal, goal, 0);
            plan.goal = goal;
            play(&random, &plan, &rollout, wanted, &next, false);
        }
        for (int i = 0; i < 30; i++) /* in the end all are ready */
            play(&random, &plan, &rollout, wanted, &next, true);
        assert_false(rollout_is_under_way(&rollout));
        assert_int_equal(plan.count, wanted);
        for (size_t i = 0; i < plan.count; i++)
            assert_int_equal(items[i].revision, plan.goal);
    }
}

/* Pairs of half shares: a waiting new replica, and the old one that makes room for it. */
static void shared(void **state)
{
    struct replica_plan_item items[] = {
        { .number = 1, .revision = 1, .stage = REPLICA_STAGE_READY },
        { .number = 2, .revision = 1, .stage = REPLICA_STAGE_READY },
        { .number = 3, .revision = 2, .stage = REPLICA_STAGE_READY },
        { .number = 4, .revision = 2, .stage = REPLICA_STAGE_STARTING, .is_unplaced = true },
    };
    struct replica_plan plan = { .goal = 2, .items = items, .count = AQ_COUNT(items) };
    struct rollout_actions wanted = { .old_wanted = 2, .new_wanted = 2, .shared = 1 };

    (void)state;
    replica_plan(&plan, &wanted);
    assert_false(items[0].has_half_share);
    assert_true(items[1].has_half_share); /* the one that ends next */
    assert_false(items[2].has_half_share);
    assert_true(items[3].has_half_share);
    items[3].stage = REPLICA_STAGE_LEAVING; /* another one with half a share takes its place */
    replica_plan(&plan, &wanted);
    assert_int_equal(plan.new_created, 1);
    assert_true(items[1].has_half_share);
    assert_false(items[2].has_half_share);
    items[3].stage = REPLICA_STAGE_STARTING;
    replica_plan(&plan, &wanted);
    /* It has its place and is ready: the pair stays one until the old one has ended. */
    for (size_t i = 0; i < AQ_COUNT(items); i++)
        items[i].had_half_share = items[i].has_half_share;
    items[3].is_unplaced = false;
    items[3].stage = REPLICA_STAGE_READY;
    wanted.old_wanted = 1;
    replica_plan(&plan, &wanted);
    assert_true(items[1].ends && items[1].has_half_share);
    assert_true(items[3].has_half_share);
    items[1].stage = REPLICA_STAGE_LEAVING;
    items[1].had_half_share = items[3].had_half_share = false; /* the manager has started again */
    replica_plan(&plan, &wanted);
    assert_true(items[1].has_half_share);
    assert_true(items[3].has_half_share);
    wanted.shared = 0;
    replica_plan(&plan, &wanted);
    assert_false(items[1].has_half_share || items[3].has_half_share);
}

/* Old ones are missing where a strategy keeps them. */
static void old_ones_are_created_again(void **state)
{
    struct replica_plan_item items[] = {
        { .number = 1, .revision = 1, .stage = REPLICA_STAGE_LEAVING },
        { .number = 2, .revision = 1, .stage = REPLICA_STAGE_READY },
        { .number = 3, .revision = 2, .stage = REPLICA_STAGE_READY },
    };
    struct replica_plan plan = { .goal = 2, .items = items, .count = AQ_COUNT(items) };
    struct rollout_actions wanted = { .old_wanted = 3, .new_wanted = 3 };

    (void)state;
    replica_plan(&plan, &wanted);
    assert_int_equal(plan.old_created, 2);
    assert_int_equal(plan.new_created, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned),
        cmocka_unit_test(any_rollout),
        cmocka_unit_test(shared),
        cmocka_unit_test(old_ones_are_created_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
