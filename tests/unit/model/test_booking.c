/* SPDX-License-Identifier: Apache-2.0 */
/* Bookings: states by the time, bounds, what the row keeps as JSON. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "model/booking.h"

#define NOW (INT64_C(1800000000) * USEC_PER_SEC)
#define HOUR (3600 * USEC_PER_SEC)

static struct booking make_booking(void)
{
    struct booking b = { .id = uuid_random(),
                         .name = "exam",
                         .version = 1,
                         .starts_usec = NOW + HOUR,
                         .ends_usec = NOW + 3 * HOUR,
                         .nodes = 1 };

    b.resource_group = aq_strdup("default");
    assert_int_equal(slots_set(&b.amounts, "cuda.device", 4 * AMOUNT_ONE), 0);
    b.projects.items = aq_alloc(sizeof(*b.projects.items));
    b.projects.items[0] = uuid_random();
    b.projects.count = b.projects.cap = 1;
    return b;
}

static void test_states(void **state)
{
    AQ_CLEANUP(booking_donep) struct booking b = make_booking();

    (void)state;
    assert_int_equal(booking_state_at(&b, NOW), BOOKING_PLANNED);
    assert_int_equal(booking_state_at(&b, b.starts_usec - 1), BOOKING_PLANNED);
    assert_int_equal(booking_state_at(&b, b.starts_usec), BOOKING_ACTIVE);
    assert_int_equal(booking_state_at(&b, b.ends_usec - 1), BOOKING_ACTIVE);
    assert_int_equal(booking_state_at(&b, b.ends_usec), BOOKING_ENDED);
    b.outcome = BOOKING_RELEASED;
    assert_int_equal(booking_state_at(&b, b.starts_usec), BOOKING_RELEASED);
    for (int i = 0; i < BOOKING_STATE_COUNT; i++) {
        enum booking_state read;

        assert_int_equal(booking_state_parse(booking_state_name((enum booking_state)i), &read), 0);
        assert_int_equal(read, i);
    }
    assert_int_equal(booking_state_parse("over", &b.outcome), -EINVAL);
}

static void test_for_whom(void **state)
{
    AQ_CLEANUP(booking_donep) struct booking b = make_booking();
    struct uuid other = uuid_random(), project = b.projects.items[0];

    (void)state;
    assert_true(booking_is_for(&b, &other, &project));
    assert_false(booking_is_for(&b, &other, &other));
    assert_false(booking_is_for(&b, &project, &other)); /* a project's id is no user's */
}

static void spoil_name(struct booking *b)
{
    (void)snprintf(b->name, sizeof(b->name), "x y");
}
static void spoil_far(struct booking *b)
{
    b->starts_usec = NOW + BOOKING_AHEAD_MAX_USEC + 1;
    b->ends_usec = b->starts_usec + HOUR;
}
static void spoil_past(struct booking *b)
{
    b->starts_usec = NOW - 2 * HOUR;
    b->ends_usec = NOW;
}
static void spoil_short(struct booking *b)
{
    b->ends_usec = b->starts_usec + BOOKING_DURATION_MIN_USEC - 1;
}
static void spoil_long(struct booking *b)
{
    b->ends_usec = b->starts_usec + BOOKING_DURATION_MAX_USEC + 1;
}
static void spoil_backwards(struct booking *b)
{
    b->ends_usec = b->starts_usec - 1;
}
static void spoil_release(struct booking *b)
{
    b->release_unused_usec = -1;
}
static void spoil_amounts(struct booking *b)
{
    assert_int_equal(slots_set(&b->amounts, "cuda.device", 0), 0);
}
static void spoil_infinite(struct booking *b)
{
    assert_int_equal(slots_set(&b->amounts, "cuda.device", AMOUNT_INFINITE), 0);
}
static void spoil_nodes(struct booking *b)
{
    b->nodes = BOOKING_NODES_MAX + 1;
}
static void spoil_agents(struct booking *b)
{
    b->nodes = 2;
    booking_add_agent(b, "a");
}
static void spoil_members(struct booking *b)
{
    b->projects.count = 0;
}
static void spoil_nothing(struct booking *b)
{
    (void)b;
}

static void test_bounds(void **state)
{
    static const struct {
        void (*spoil)(struct booking *b);
        const char *field;
    } rows[] = {
        { spoil_nothing, NULL },         { spoil_name, "name" },
        { spoil_far, "start" },          { spoil_past, "start" },
        { spoil_short, "duration" },     { spoil_long, "duration" },
        { spoil_backwards, "duration" }, { spoil_release, "release_unused" },
        { spoil_amounts, "resources" },  { spoil_infinite, "resources" },
        { spoil_nodes, "nodes" },        { spoil_agents, "agents" },
        { spoil_members, "for" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(booking_donep) struct booking b = make_booking();
        struct aq_error err = { 0 };
        int r;

        rows[i].spoil(&b);
        r = booking_check(&b, NOW, &err);
        assert_row(r == (rows[i].field ? -EINVAL : 0), "%zu: %d %s", i, r, err.text);
        assert_string_equal(err.field, rows[i].field ? rows[i].field : "");
    }
}

static void test_details(void **state)
{
    AQ_CLEANUP(booking_donep) struct booking b = make_booking();
    AQ_CLEANUP(booking_donep) struct booking copy = { .name = "" };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    const struct booking_place places[] = {
        { .agent_id = (char[]){ "gpu-1" },
          .devices = (char[]){ "{\"cuda.device\":{\"A\":\"1\"}}" } },
        { .agent_id = (char[]){ "gpu-2" } },
    };

    (void)state;
    booking_set_places(&b, places, 2);
    booking_set_agents_of_places(&b, &b);
    booking_add_agent(&b, "gpu-3");
    booking_write_details(&b, &w);
    booking_copy(&copy, &b);
    assert_true(booking_equals(&copy, &b));
    booking_set_places(&copy, NULL, 0);
    booking_set_agents_of_places(&copy, NULL);
    copy.projects.count = 0;
    assert_false(booking_equals(&copy, &b));
    assert_int_equal(booking_parse_details(text.data, &copy, NULL), 0);
    assert_true(booking_equals(&copy, &b));
    assert_int_equal(booking_find_place(&copy, "gpu-2"), 1);
    assert_int_equal(booking_find_place(&copy, "gpu-3"), -1);
    assert_true(booking_names_agent(&copy, "gpu-3"));
    assert_false(booking_names_agent(&copy, "gpu-4"));
}

static void test_damaged_details(void **state)
{
    static const char *const rows[] = {
        "",
        "[]",
        "{\"projects\":[\"x\"]}",
        "{\"users\":[1]}",
        "{\"agents\":[null]}",
        "{\"places\":[{}]}",
        "{\"places\":[{\"agent\":1}]}",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(booking_donep) struct booking b = make_booking();
        struct aq_error err;

        assert_row(booking_parse_details(rows[i], &b, &err) == -EINVAL, "%s", rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),          cmocka_unit_test(test_for_whom),
        cmocka_unit_test(test_bounds),          cmocka_unit_test(test_details),
        cmocka_unit_test(test_damaged_details),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
