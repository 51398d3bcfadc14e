/* SPDX-License-Identifier: Apache-2.0 */
/* A request whose answer is kept makes its sessions once; what bounds the answers. */
#include "world.h"

#include "manager/call/repeat.h"
#include "store/request_answer.h"

static int write_answer(void *data, const struct core_created *created, struct strbuf *out)
{
    char id[UUID_TEXT_MAX];

    (void)data;
    strbuf_addf(out, "%s %s %s", uuid_format(&created->id, id),
                session_status_name(created->status), created->is_new ? "new" : "reused");
    return 201;
}

static const struct session_request good = { .name = "once",
                                             .type = SESSION_BATCH,
                                             .spec.image = "sh",
                                             .spec.command = "true",
                                             .access_key = USER_KEY,
                                             .priority = -1 };

static struct answer create_once(const struct session_request *req, const char *key, bool always)
{
    const struct core_answered answered = { USER_KEY, key, "abc", always, write_answer };
    struct answer a = { 0 };

    core_create_sessions(world.core, &req, 1, &answered, NULL, on_created, &a);
    settle();
    assert_true(a.came);
    return a;
}

struct kept {
    const char *key;
    char body[128];
};

static int read_kept(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct request_answer answer = { .digest = NULL };
    struct kept *kept = data;
    int r = request_answer_find(tx, USER_KEY, kept->key, &answer, err);

    (void)snprintf(kept->body, sizeof(kept->body), "%s", r > 0 ? answer.body : "");
    request_answer_done(&answer);
    return r;
}

static const char *kept_of(const char *key)
{
    static struct kept kept;

    kept.key = key;
    assert_true(store_call(core_store(world.core), read_kept, &kept, NULL) >= 0);
    return kept.body;
}

static void test_made_once(void **state)
{
    struct session_request other = good;
    char expected[128], id[UUID_TEXT_MAX];
    struct answer a;

    (void)state;
    a = create_once(&good, "key", false);
    assert_int_equal(a.r, 0);
    (void)snprintf(expected, sizeof(expected), "%s PENDING new", uuid_format(&a.created.id, id));
    assert_string_equal(kept_of("key"), expected);
    other.name = "other";
    a = create_once(&other, "key", false);
    assert_int_equal(a.r, -EALREADY);
    assert_int_equal(world.core->sessions_by_id.count, 1);
    assert_int_equal(create_once(&other, "next", false).r, 0);
    restart_core();
    other.name = "third";
    assert_int_equal(create_once(&other, "key", false).r, -EALREADY);
    assert_int_equal(world.core->sessions_by_id.count, 2);
    assert_string_equal(kept_of("key"), expected);
    assert_clean();
}

/* Neither is one that makes nothing, unless it shall be. */
static void test_refused_ones_are_not_kept(void **state)
{
    struct session_request req = good;

    (void)state;
    assert_int_equal(create_once(&req, "first", false).r, 0);
    assert_int_equal(create_once(&req, "refused", true).r, -EEXIST);
    assert_string_equal(kept_of("refused"), "");
    req.reuse = true;
    for (int i = 0; i < 2; i++) {
        struct answer a = create_once(&req, "reused", false);

        assert_int_equal(a.r, 0);
        assert_false(a.created.is_new);
    }
    assert_string_equal(kept_of("reused"), "");
    assert_int_equal(create_once(&req, "named", true).r, 0);
    assert_non_null(strstr(kept_of("named"), " PENDING reused"));
    assert_int_equal(create_once(&req, "named", true).r, -EALREADY);
    assert_clean();
}

static void add_old(const char *key, int64_t age_usec)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_REQUEST_ANSWERED,
                                      clock_realtime_usec() - age_usec);

    e->answered.access_key = USER_KEY;
    e->answered.request_key = key;
    e->answered.digest = e->answered.body = "x";
    core_save(world.core, batch, NULL, NULL, NULL);
    settle();
}

static void test_old_ones_go(void **state)
{
    struct kept_answers *kept = kept_answers_new(core_store(world.core));

    (void)state;
    add_old("yesterday", 24 * 3600 * USEC_PER_SEC + 1);
    add_old("today", 23 * 3600 * USEC_PER_SEC);
    kept_answers_tick(kept, clock_monotonic_usec());
    kept_answers_tick(kept, clock_monotonic_usec()); /* one piece at a time */
    settle();
    assert_string_equal(kept_of("yesterday"), "");
    assert_string_equal(kept_of("today"), "x");
    assert_false(kept_answers_know(kept, USER_KEY, "today"));
    kept_answers_add(kept, USER_KEY, "today");
    assert_true(kept_answers_know(kept, USER_KEY, "today"));
    assert_false(kept_answers_know(kept, ADMIN_KEY, "today"));
    for (int i = 0; i < 10000; i++) /* looks at the keypair's number then */
        kept_answers_add(kept, USER_KEY, "today");
    kept_answers_tick(kept, 0);
    settle();
    assert_string_equal(kept_of("today"), "x");
    kept_answers_free(kept);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(test_made_once),
        TEST(test_refused_ones_are_not_kept),
        TEST(test_old_ones_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
