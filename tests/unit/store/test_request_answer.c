/* SPDX-License-Identifier: Apache-2.0 */
/* What requests were answered: written with the change, found by who asked, removed in time. */
#include "store_testing.h"

#include <string.h>

#include "store/request_answer.h"

static void add_answer(struct event_batch *batch, const char *access_key, const char *key,
                       int64_t at, const char *body)
{
    struct event *e = event_batch_add(batch, EVENT_REQUEST_ANSWERED, at);

    e->answered.access_key = access_key;
    e->answered.request_key = key;
    e->answered.digest = "abc";
    e->answered.status = 201;
    e->answered.body = body;
}

static int commit_answer(struct bench *b, const char *access_key, const char *key, int64_t at,
                         const char *body)
{
    struct event_batch *batch = event_batch_new();

    add_answer(batch, access_key, key, at, body);
    return bench_commit(b, batch, NULL);
}

struct look {
    const char *access_key, *key;
    char body[64];
    int64_t before, keep;
    int max;
};

static int find(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct request_answer answer = { .digest = NULL };
    struct look *look = data;
    int r = request_answer_find(tx, look->access_key, look->key, &answer, err);

    look->body[0] = '\0';
    if (r > 0) {
        assert_string_equal(answer.digest, "abc");
        assert_int_equal(answer.status, 201);
        (void)snprintf(look->body, sizeof(look->body), "%s", answer.body);
    }
    request_answer_done(&answer);
    return r;
}

static const char *body_of(struct bench *b, const char *access_key, const char *key)
{
    static struct look look;

    look = (struct look){ access_key, key, "", 0, 0, 0 };
    return store_call(b->store, find, &look, NULL) > 0 ? look.body : NULL;
}

static int prune(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct look *look = data;

    return request_answers_prune(tx, look->before, look->max, err);
}

static int trim(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct look *look = data;

    return request_answers_trim(tx, look->access_key, look->keep, look->max, err);
}

static void test_found_by_who_asked(void **state)
{
    struct bench *b = *state;

    assert_int_equal(commit_answer(b, "AKIAONE", "k", 1, "{\"n\":1}"), 0);
    assert_int_equal(commit_answer(b, "AKIATWO", "k", 1, "{\"n\":2}"), 0);
    assert_string_equal(body_of(b, "AKIAONE", "k"), "{\"n\":1}");
    assert_string_equal(body_of(b, "AKIATWO", "k"), "{\"n\":2}");
    assert_null(body_of(b, "AKIAONE", "K"));
    assert_null(body_of(b, "AKIATHREE", "k"));
    bench_reopen(b);
    assert_string_equal(body_of(b, "AKIAONE", "k"), "{\"n\":1}");
}

/* A second time nothing of it is written, and what shares its commit is. */
static void test_answered_once(void **state)
{
    struct bench *b = *state;
    struct event_batch *batches[3];
    struct outcome outcomes[3] = { { 0 } };
    char *dump;

    assert_int_equal(commit_answer(b, "AKIAONE", "k", 1, "first"), 0);
    for (size_t i = 0; i < AQ_COUNT(batches); i++) {
        static const char *const names[] = { "before", "repeated", "behind" };

        batches[i] = event_batch_new();
        (void)add_session(batches[i], b, names[i], 1);
        add_answer(batches[i], "AKIAONE", i == 1 ? "k" : names[i], 2, names[i]);
        store_commit(b->store, batches[i], on_committed, &outcomes[i]);
    }
    store_flush(b->store);
    assert_int_equal(outcomes[0].result, 0);
    assert_int_equal(outcomes[1].result, -EALREADY);
    assert_string_equal(outcomes[1].err.text, "this request was made before");
    assert_int_equal(outcomes[2].result, 0);
    dump = bench_dump(b);
    assert_non_null(strstr(dump, " before batch"));
    assert_null(strstr(dump, " repeated batch"));
    assert_non_null(strstr(dump, " behind batch"));
    free(dump);
    assert_string_equal(body_of(b, "AKIAONE", "k"), "first");
    assert_string_equal(body_of(b, "AKIAONE", "behind"), "behind");
}

static void test_removed(void **state)
{
    struct bench *b = *state;
    struct look look = { "AKIAONE", NULL, "", 5, 4, 2 };
    char key[8];

    for (int i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof(key), "k%d", 9 - i); /* not in the order of the keys */
        assert_int_equal(commit_answer(b, i % 5 ? "AKIAONE" : "AKIATWO", key, i, key), 0);
    }
    assert_int_equal(store_call(b->store, prune, &look, NULL), 2); /* at 0 and 1 */
    assert_null(body_of(b, "AKIAONE", "k8"));
    assert_string_equal(body_of(b, "AKIAONE", "k7"), "k7");
    assert_int_equal(store_call(b->store, trim, &look, NULL), 2); /* at 2 and 3, of 2-4 and 6-9 */
    assert_int_equal(store_call(b->store, trim, &look, NULL), 1);
    assert_int_equal(store_call(b->store, trim, &look, NULL), 0);
    assert_null(body_of(b, "AKIAONE", "k5"));
    assert_string_equal(body_of(b, "AKIATWO", "k4"), "k4");
    assert_string_equal(body_of(b, "AKIAONE", "k3"), "k3");
    look.before = 100;
    look.max = 100;
    assert_int_equal(store_call(b->store, prune, &look, NULL), 5);
    assert_int_equal(commit_answer(b, "AKIAONE", "k3", 1, "again"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_found_by_who_asked, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_answered_once, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_removed, bench_setup, bench_teardown),
    };

    return BENCH_RUN(tests, 0);
}
