/* SPDX-License-Identifier: Apache-2.0 */
/* Logins by browsers: found by the cookie's hash, and gone with the right to them. */
#include "store_testing.h"

#include <string.h>

#include "store/query.h"
#include "store/web_login.h"

struct work {
    unsigned char hash[WEB_LOGIN_HASH_SIZE];
    struct web_login login;
    int64_t password_usec, now_usec;
    const struct uuid *user_id;
    struct arena arena;
    struct web_login *found;
};

static int add(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct work *work = data;
    int r = user_is_active_since(tx, &work->login.user_id, work->password_usec, err);

    return r > 0 ? web_login_add(tx, work->hash, &work->login, err) : r == 0 ? -EACCES : r;
}

static int find(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct work *work = data;

    return web_login_find(tx, work->hash, work->now_usec, &work->login, err);
}

static int use(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct work *work = data;

    return web_login_use(tx, &work->login.id, work->now_usec, work->login.expires_usec, err);
}

static int list(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct work *work = data;

    return web_login_list(tx, work->user_id, work->now_usec, &work->arena, &work->found, err);
}

static int end(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct work *work = data;

    return web_login_end(tx, &work->login.id, work->user_id, err);
}

static int look_user(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct store_login login = { .changed_usec = 0 };
    struct work *work = data;
    int r = store_find_login(tx, NULL, work->login.agent, &login, err);

    work->password_usec = login.changed_usec;
    work->login.user_id = login.user_id;
    return r;
}

/* A user with a keypair, and a login of it that lasts until 1,000. */
static struct work begin(struct bench *b, unsigned char first)
{
    struct work work = { .hash = { first }, .now_usec = 100 };

    (void)snprintf(work.login.agent, sizeof(work.login.agent), "user@example.org");
    assert_int_equal(store_call(b->store, look_user, &work, NULL), 0);
    assert_true(uuid_equals(&work.login.user_id, &b->user_id));
    work.login.id = uuid_random();
    work.login.created_usec = work.login.used_usec = 10;
    work.login.expires_usec = 1000;
    (void)snprintf(work.login.access_key, sizeof(work.login.access_key), "AKIATEST");
    (void)snprintf(work.login.address, sizeof(work.login.address), "192.0.2.1");
    return work;
}

static void save_user(struct bench *b, enum user_status status, const char *hash)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_USER_SAVED, 50);

    e->user.user = (struct user){ .id = b->user_id,
                                  .username = strdup("user"),
                                  .email = strdup("user@example.org"),
                                  .domain = strdup("default"),
                                  .role = ROLE_USER,
                                  .status = status };
    e->user.password_hash = hash ? strdup(hash) : NULL;
    e->ends_logins = status != USER_ACTIVE || hash;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

static void test_found_by_its_hash(void **state)
{
    struct bench *b = *state;
    struct work work, other;

    save_user(b, USER_ACTIVE, NULL);
    work = begin(b, 1);
    assert_int_equal(store_call(b->store, add, &work, NULL), 0);
    bench_reopen(b);
    other = (struct work){ .hash = { 1 }, .now_usec = 999 };
    assert_int_equal(store_call(b->store, find, &other, NULL), 1);
    assert_true(uuid_equals(&other.login.id, &work.login.id));
    assert_string_equal(other.login.access_key, "AKIATEST");
    assert_string_equal(other.login.address, "192.0.2.1");
    other.now_usec = 1000;
    assert_int_equal(store_call(b->store, find, &other, NULL), 0);
    other.hash[0] = 2;
    assert_int_equal(store_call(b->store, find, &other, NULL), 0);
    work.login.expires_usec = 2000;
    assert_int_equal(store_call(b->store, use, &work, NULL), 0);
    other = (struct work){ .hash = { 1 }, .now_usec = 1500 };
    assert_int_equal(store_call(b->store, find, &other, NULL), 1);
    assert_int_equal(other.login.used_usec, 100);
}

static void test_only_with_the_password_that_was_looked_at(void **state)
{
    struct bench *b = *state;
    struct work work;

    save_user(b, USER_ACTIVE, "hash");
    work = begin(b, 1);
    work.password_usec--;
    assert_int_equal(store_call(b->store, add, &work, NULL), -EACCES);
    work.password_usec++;
    assert_int_equal(store_call(b->store, add, &work, NULL), 0);
}

static void test_gone_with_the_right(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < 3; i++) {
        struct work work;

        save_user(b, USER_ACTIVE, NULL);
        work = begin(b, (unsigned char)i);
        assert_int_equal(store_call(b->store, add, &work, NULL), 0);
        save_user(b, USER_ACTIVE, NULL); /* what changes nothing of it */
        assert_int_equal(store_call(b->store, find, &work, NULL), 1);
        save_user(b, i == 0 ? USER_INACTIVE : USER_ACTIVE, i == 0 ? NULL : "another");
        assert_int_equal(store_call(b->store, find, &work, NULL), 0);
    }
}

static void save_keypair(struct bench *b, bool ends_logins)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_KEYPAIR_SAVED, 50);

    e->ends_logins = ends_logins;
    e->keypair.user_id = b->user_id;
    e->keypair.is_active = true;
    e->keypair.policy = strdup("default");
    (void)snprintf(e->keypair.access_key, sizeof(e->keypair.access_key), "AKIATEST");
    (void)snprintf(e->keypair.secret_key, sizeof(e->keypair.secret_key), "secret");
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

static void test_gone_with_the_keypair(void **state)
{
    struct bench *b = *state;
    struct work work;

    save_user(b, USER_ACTIVE, NULL);
    work = begin(b, 1);
    assert_int_equal(store_call(b->store, add, &work, NULL), 0);
    save_keypair(b, false);
    assert_int_equal(store_call(b->store, find, &work, NULL), 1);
    save_keypair(b, true);
    assert_int_equal(store_call(b->store, find, &work, NULL), 0);
}

static void test_listed_and_ended(void **state)
{
    struct bench *b = *state;
    struct uuid stranger = uuid_random();
    struct work work = { .user_id = NULL }, all = { .user_id = &b->user_id, .now_usec = 100 };

    save_user(b, USER_ACTIVE, NULL);
    for (int i = 0; i < WEB_LOGINS_MAX + 5; i++) {
        work = begin(b, (unsigned char)i);
        work.login.used_usec = i;
        assert_int_equal(store_call(b->store, add, &work, NULL), 0);
    }
    assert_int_equal(store_call(b->store, list, &all, NULL), WEB_LOGINS_MAX);
    assert_true(uuid_equals(&all.found[0].id, &work.login.id)); /* the one used last */
    work.user_id = &stranger;
    assert_int_equal(store_call(b->store, end, &work, NULL), 0);
    work.user_id = &b->user_id;
    assert_int_equal(store_call(b->store, end, &work, NULL), 1);
    assert_int_equal(store_call(b->store, end, &work, NULL), 0);
    arena_done(&all.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_found_by_its_hash, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_only_with_the_password_that_was_looked_at, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(test_gone_with_the_right, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_gone_with_the_keypair, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_listed_and_ended, bench_setup, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
