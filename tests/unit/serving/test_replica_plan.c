/* SPDX-License-Identifier: Apache-2.0 */
/* Which replicas are created and which end: a table of cases, and any rollout by chance. */
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

static void planned(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct replica_plan_item items[16];
        struct replica_plan plan = {
            .wanted = cases[i].wanted, .goal = 2, .surge = 1, .items = items
        };
        char after[40] = "";
        int64_t created;

        for (const char *c = cases[i].replicas; *c; c++, plan.count++)
            items[plan.count] = (struct replica_plan_item){
                .number = (int64_t)plan.count + 1,
                .revision = isupper((unsigned char)*c) ? 2 : 1,
                .stage = stage_of(*c),
            };
        created = replica_plan(&plan);
        for (size_t k = 0; k < plan.count; k++) {
            size_t len = strlen(after);

            (void)snprintf(after + len, sizeof(after) - len, "%c%s", cases[i].replicas[k],
                           items[k].ends ? "-" : "");
        }
        if (created != cases[i].created || strcmp(after, cases[i].after) != 0)
            fail_msg("%s: '%s' becomes '%s' and %lld, expected '%s' and %lld", cases[i].why,
                     cases[i].replicas, after, (long long)created, cases[i].after,
                     (long long)cases[i].created);
    }
}

#define MANY 64

/* One round of a rollout: the plan is carried out, and some of what can happen happens. */
static void play(struct test_random *random, struct replica_plan *plan, int64_t *next, bool calm)
{
    int64_t ready = 0, left = 0, created;
    size_t kept = 0;

    for (size_t i = 0; i < plan->count; i++)
        ready += plan->items[i].stage == REPLICA_STAGE_READY;
    created = replica_plan(plan);
    for (size_t i = 0; i < plan->count; i++) {
        struct replica_plan_item *item = &plan->items[i];

        assert_false(item->ends && item->stage == REPLICA_STAGE_LEAVING);
        left += item->stage == REPLICA_STAGE_READY && !item->ends;
        if (item->ends)
            item->stage = REPLICA_STAGE_LEAVING;
    }
    /* What answers stays, as long as it is wanted. */
    assert_true(left >= (ready < plan->wanted ? ready : plan->wanted));
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].stage != REPLICA_STAGE_LEAVING || (!calm && random_below(random, 2)))
            plan->items[kept++] = plan->items[i];
    plan->count = kept;
    for (int64_t i = 0; i < created; i++) {
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
        struct replica_plan plan = {
            .wanted = random_below(&random, 6), .goal = 1, .surge = 1, .items = items
        };
        int64_t next = 1;

        for (int i = 0; i < 30; i++) {
            if (random_below(&random, 6) == 0)
                plan.wanted = random_below(&random, 6);
            if (random_below(&random, 6) == 0)
                plan.goal = 1 + random_below(&random, 3);
            play(&random, &plan, &next, false);
        }
        for (int i = 0; i < 30; i++) /* in the end all are ready */
            play(&random, &plan, &next, true);
        assert_int_equal(plan.count, plan.wanted);
        for (size_t i = 0; i < plan.count; i++)
            assert_int_equal(items[i].revision, plan.goal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned),
        cmocka_unit_test(any_rollout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
