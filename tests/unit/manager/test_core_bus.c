/* SPDX-License-Identifier: Apache-2.0 */
/* Subscribers of events: one ends others, and subscribes, while an event is published. */
#include "world.h"

#include "manager/core/bus.h"

#define READERS 4

/* As a request that waits for an event: on the heap, and freed once it has its reply. */
struct reader {
    struct core_subscriber *subscriber;
    size_t place;
    char name;
};

static struct reader *readers[READERS + 1];
static struct uuid session;    /* that they subscribe to; nil = all */
static char heard[64];         /* names of readers, in the order of their calls */
static void (*act)(size_t at); /* what a reader does */

static void on_heard(void *data, const struct core_event *event)
{
    struct reader *reader = data;
    size_t len = strlen(heard);

    (void)event;
    assert_true(len + 1 < sizeof(heard));
    heard[len] = reader->name;
    heard[len + 1] = '\0';
    act(reader->place);
}

static void reader_new(size_t place)
{
    struct reader *reader = calloc(1, sizeof(*reader));

    assert_non_null(reader);
    reader->place = place;
    reader->name = (char)('a' + place);
    reader->subscriber = core_subscribe(world.core, uuid_is_nil(&session) ? NULL : &session,
                                        on_heard, reader);
    assert_non_null(reader->subscriber);
    readers[place] = reader;
}

static void reader_free(size_t place)
{
    if (!readers[place])
        return;
    core_unsubscribe(world.core, readers[place]->subscriber);
    free(AQ_TAKE(readers[place]));
}

static void act_nothing(size_t at)
{
    (void)at;
}

static void act_end_next(size_t at)
{
    reader_free(at + 1);
}

static void act_end_all(size_t at)
{
    (void)at;
    for (size_t i = 0; i <= READERS; i++)
        reader_free(i);
}

static void act_subscribe_and_leave(size_t at)
{
    if (at == 0)
        reader_new(READERS);
    reader_free(at);
}

static void publish(void)
{
    core_announce_execution(world.core, &session, "execution_started", "run", NULL);
}

/* An event and its successor, to subscribers of all sessions or of one. */
static void check(bool is_for_one, void (*what)(size_t at), const char *first, const char *second)
{
    struct uuid id = submit("bus");

    heard[0] = '\0';
    session = is_for_one ? id : (struct uuid){ 0 };
    act = act_nothing;
    for (size_t i = 0; i < READERS; i++)
        reader_new(i);
    session = id;
    act = what;
    publish();
    assert_string_equal(heard, first);
    act = act_nothing;
    heard[0] = '\0';
    publish();
    assert_string_equal(heard, second);
    act_end_all(0);
    assert_int_equal(terminate(&id, true).r, 0);
}

static void test_one_ends_the_next(void **state)
{
    (void)state;
    check(false, act_end_next, "ac", "ac");
    check(true, act_end_next, "ac", "ac");
}

static void test_one_ends_all(void **state)
{
    (void)state;
    check(false, act_end_all, "a", "");
    check(true, act_end_all, "a", "");
}

static void test_a_new_one_gets_the_next_event(void **state)
{
    (void)state;
    check(false, act_subscribe_and_leave, "abcd", "e");
    check(true, act_subscribe_and_leave, "abcd", "e");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_ends_the_next, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_one_ends_all, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_a_new_one_gets_the_next_event, world_begin, world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
