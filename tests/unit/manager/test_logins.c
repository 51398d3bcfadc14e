/* SPDX-License-Identifier: Apache-2.0 */
/* What limits guesses of passwords: counts and delays, the queue, who asks. */
#include "testing.h"

#include <errno.h>

#include "base/clock.h"
#include "http/client_address.h"
#include "manager/login/login_limit.h"
#include "manager/login/password_queue.h"

#define SEC USEC_PER_SEC
#define START (1000 * SEC)

/* ---- delays ---- */

static int64_t try_at(struct login_limits *limits, const char *account, const char *address,
                      int64_t now)
{
    struct login_try attempt = { .account = account, .address = address, .now_usec = now };

    return login_limits_begin(limits, &attempt);
}

static void log_in(struct login_limits *limits, const char *account, const char *address,
                   int64_t now, uint32_t failures)
{
    struct login_try attempt = { .account = account, .address = address, .now_usec = now };
    struct login_failures failed;

    assert_int_equal(login_limits_begin(limits, &attempt), 0);
    login_limits_succeed(limits, &attempt, &failed);
    assert_int_equal(failed.count, failures);
}

static void test_the_delay_doubles_up_to_a_quarter_of_an_hour(void **state)
{
    AQ_CLEANUP(login_limits_freep) struct login_limits *limits = login_limits_new();
    int64_t now = START, wait = 0, before;

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(try_at(limits, "a", "1", now), 0);
    before = try_at(limits, "a", "1", now);
    assert_int_equal(before, SEC);
    for (int i = 0; i < 12; i++) {
        now += before;
        assert_int_equal(try_at(limits, "a", "1", now), 0);
        wait = try_at(limits, "a", "1", now);
        assert_true(wait == AQ_MIN(2 * before, 900 * SEC));
        before = wait;
    }
    assert_int_equal(wait, 900 * SEC);
    assert_int_equal(try_at(limits, "b", "1", now), 0); /* another account */
    now += 3601 * SEC;
    for (int i = 0; i < 5; i++) /* forgotten */
        assert_int_equal(try_at(limits, "a", "1", now), 0);
}

static void test_a_known_address_has_its_own_count_only(void **state)
{
    AQ_CLEANUP(login_limits_freep) struct login_limits *limits = login_limits_new();
    char address[16];
    int64_t now = START, wait;

    (void)state;
    log_in(limits, "a", "home", now, 0);
    for (int i = 0; i < 500; i++) { /* each as soon as it may */
        (void)snprintf(address, sizeof(address), "%d", i);
        if ((wait = try_at(limits, "a", address, now)) > 0) {
            now += wait;
            assert_int_equal(try_at(limits, "a", address, now), 0);
        }
    }
    assert_int_equal(try_at(limits, "a", "elsewhere", now), 60 * SEC);
    assert_int_equal(try_at(limits, "a", "home", now), 0);
    assert_int_equal(try_at(limits, "b", "elsewhere", now), 0);
}

static void test_a_login_tells_of_what_failed_and_resets_its_own_count(void **state)
{
    AQ_CLEANUP(login_limits_freep) struct login_limits *limits = login_limits_new();
    struct login_try cut_off = { .account = "a", .address = "1", .now_usec = START };

    (void)state;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(try_at(limits, "a", "1", START), 0);
        assert_int_equal(login_limits_begin(limits, &cut_off), 0);
        login_limits_cancel(limits, &cut_off);
        log_in(limits, "a", "1", START, 3);
    }
    log_in(limits, "a", "1", START, 0);
}

static void test_memory_is_bounded_and_keeps_who_logged_in(void **state)
{
    AQ_CLEANUP(login_limits_freep) struct login_limits *limits = login_limits_new();
    char name[32];

    (void)state;
    log_in(limits, "a", "home", START, 0);
    for (int i = 0; i < 200000; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        (void)try_at(limits, name, name, START + i);
    }
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "new-%d", i);
        (void)try_at(limits, "a", name, START + SEC);
    }
    assert_int_equal(try_at(limits, "a", "home", START + SEC), 0);
}

/* ---- the queue ---- */

static const struct password_check *order[400];
static size_t done_count;

static void on_done(struct password_check *check)
{
    order[done_count++] = check;
}

static void close_queue(uv_loop_t *loop, struct password_queue *queue)
{
    password_queue_free(queue);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

static void run_until_done(uv_loop_t *loop, size_t count)
{
    while (done_count < count)
        (void)uv_run(loop, UV_RUN_ONCE);
}

static void test_who_asks_for_one_is_served_before_who_asks_for_many(void **state)
{
    struct password_check flood[PASSWORD_QUEUE_ADDRESS_MAX], one = { .address = "2" };
    struct password_check more = { .address = "1", .password = "x", .done = on_done };
    struct password_queue *queue;
    struct aq_error err;
    uv_loop_t loop;
    size_t place = 0, taken = 0;

    (void)state;
    done_count = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    queue = password_queue_new(&loop);
    for (size_t i = 0; i < AQ_COUNT(flood); i++) {
        flood[i] = (struct password_check){ .address = "1", .password = "x", .done = on_done };
        taken += password_queue_add(queue, &flood[i], &err) == 0;
    }
    assert_int_equal(taken, AQ_COUNT(flood));
    one.password = "x";
    one.done = on_done;
    assert_int_equal(password_queue_add(queue, &one, &err), 0);
    run_until_done(&loop, AQ_COUNT(flood) + 1);
    while (order[place] != &one)
        place++;
    /* two threads may each have begun one, and are at one more when it comes */
    assert_true(place <= 4);
    assert_int_equal(password_queue_add(queue, &more, &err), 0);
    run_until_done(&loop, AQ_COUNT(flood) + 2);
    close_queue(&loop, queue);
}

static void test_what_waits_is_bounded_and_makes_room(void **state)
{
    static struct password_check checks[PASSWORD_QUEUE_MAX + 40];
    static char addresses[PASSWORD_QUEUE_MAX + 40][16];
    struct password_check late = { .address = "late", .password = "x", .done = on_done };
    struct password_queue *queue;
    struct aq_error err;
    uv_loop_t loop;
    size_t added = 0, pushed = 0;

    (void)state;
    done_count = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    queue = password_queue_new(&loop);
    for (size_t i = 0; i < AQ_COUNT(checks); i++) { /* eight of each address */
        (void)snprintf(addresses[i], sizeof(addresses[i]), "%zu", i / 8);
        checks[i] = (struct password_check){ .address = addresses[i],
                                             .password = "x",
                                             .done = on_done };
        added += password_queue_add(queue, &checks[i], &err) == 0;
    }
    assert_int_equal(password_queue_add(queue, &late, &err), 0);
    for (size_t i = 0; i < done_count; i++)
        pushed += order[i]->result == -EAGAIN;
    assert_true(pushed > 0);
    assert_true(added - pushed <= PASSWORD_QUEUE_MAX + 40);
    password_queue_stop(queue);
    assert_int_equal(done_count, added + 1);
    assert_int_equal(late.result, -ECANCELED);
    assert_int_equal(password_queue_add(queue, &late, &err), -ECANCELED);
    close_queue(&loop, queue);
}

static void test_a_password_is_checked_and_the_new_one_hashed(void **state)
{
    struct password_check right = { .address = "1", .password = "old", .new_password = "new" };
    struct password_check wrong = { .address = "1", .password = "odd", .new_password = "new" };
    struct password_queue *queue;
    struct aq_error err;
    uv_loop_t loop;

    (void)state;
    done_count = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    queue = password_queue_new(&loop);
    assert_int_equal(password_hash("old", right.hash, &err), 0);
    memcpy(wrong.hash, right.hash, sizeof(wrong.hash));
    right.done = wrong.done = on_done;
    assert_int_equal(password_queue_add(queue, &right, &err), 0);
    assert_int_equal(password_queue_add(queue, &wrong, &err), 0);
    run_until_done(&loop, 2);
    assert_true(right.is_right && password_verify(right.new_hash, "new"));
    assert_true(!wrong.is_right && !wrong.new_hash[0]);
    close_queue(&loop, queue);
}

/* ---- who asks ---- */

static void test_addresses(void **state)
{
    char first[] = "10.0.0.1", second[] = "fd00::1", *proxies[] = { first, second };
    const struct address_list trusted = { .items = proxies, .count = 2 };
    static const struct {
        const char *peer, *forwarded[2], *found, *network;
    } rows[] = {
        { "192.0.2.1", { NULL }, "192.0.2.1", "192.0.2.1" },
        { "192.0.2.1", { "203.0.113.9" }, "192.0.2.1", "192.0.2.1" },
        { "10.0.0.1", { NULL }, "10.0.0.1", "10.0.0.1" },
        { "10.0.0.1", { "203.0.113.9" }, "203.0.113.9", "203.0.113.9" },
        { "::ffff:10.0.0.1", { "203.0.113.9" }, "203.0.113.9", "203.0.113.9" },
        { "10.0.0.1", { "1.1.1.1, 203.0.113.9 " }, "203.0.113.9", "203.0.113.9" },
        { "10.0.0.1", { "1.1.1.1", "203.0.113.9" }, "203.0.113.9", "203.0.113.9" },
        { "10.0.0.1", { "203.0.113.9, fd00::1" }, "203.0.113.9", "203.0.113.9" },
        { "10.0.0.1", { "203.0.113.9", "fd00:0::1" }, "203.0.113.9", "203.0.113.9" },
        { "10.0.0.1", { "203.0.113.9, odd" }, "10.0.0.1", "10.0.0.1" },
        { "10.0.0.1", { "203.0.113.9," }, "10.0.0.1", "10.0.0.1" },
        { "10.0.0.1", { "fd00::1" }, "fd00::1", "fd00::" },
        { "fd00::1", { "2001:DB8:1:2:3:4:5:6" }, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::" },
        { "memory", { "203.0.113.9" }, "memory", "memory" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct message_header headers[] = { { "X-Forwarded-For", rows[i].forwarded[0] },
                                                  { "x-forwarded-for", rows[i].forwarded[1] } };
        struct message_head head = { .headers = headers };
        char found[CLIENT_ADDRESS_MAX], network[CLIENT_ADDRESS_MAX];

        while (head.header_count < 2 && rows[i].forwarded[head.header_count])
            head.header_count++;
        client_address_find(rows[i].peer, &head, &trusted, found);
        client_address_network(found, network);
        assert_row(!strcmp(found, rows[i].found) && !strcmp(network, rows[i].network),
                   "%zu: %s, %s", i, found, network);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_delay_doubles_up_to_a_quarter_of_an_hour),
        cmocka_unit_test(test_a_known_address_has_its_own_count_only),
        cmocka_unit_test(test_a_login_tells_of_what_failed_and_resets_its_own_count),
        cmocka_unit_test(test_memory_is_bounded_and_keeps_who_logged_in),
        cmocka_unit_test(test_who_asks_for_one_is_served_before_who_asks_for_many),
        cmocka_unit_test(test_what_waits_is_bounded_and_makes_room),
        cmocka_unit_test(test_a_password_is_checked_and_the_new_one_hashed),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
