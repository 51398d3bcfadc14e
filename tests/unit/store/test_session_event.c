/* SPDX-License-Identifier: Apache-2.0 */
/* Each event of a session has a row and a number, in the order of the commits. */
#include "store_testing.h"

#include "model/status.h"
#include "store/retention.h"
#include "store/session_event.h"

static struct session_event_place listed_after;

/* store_tx_fn: "name/reason " of what comes after a place; "? " if that is not known. */
static int list_names(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(session_event_page_freep) struct session_event_page *page = NULL;
    struct strbuf *out = data;
    int64_t last = listed_after.number;
    int r = store_list_session_events(tx, &listed_after, &page, err);

    if (r < 0)
        return r;
    strbuf_clear(out);
    strbuf_adds(out, page->is_known ? "" : page->is_old ? "old " : "unknown ");
    for (size_t i = 0; i < page->count; i++) {
        const struct session_event_row *row = &page->rows[i];

        assert_true(row->place.number > last);
        last = row->place.number;
        strbuf_addf(out, "%s%s%s%s ", row->name, row->is_kernel ? "@" : "",
                    row->is_kernel ? row->kernel.role : "", row->is_removed ? "!" : "");
        if (row->reason[0])
            strbuf_addf(out, "(%s) ", row->reason);
    }
    return 0;
}

static void assert_listed(struct bench *b, int64_t number, int64_t at_usec, const char *wanted)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    listed_after = (struct session_event_place){ number, at_usec };
    if (store_call(b->store, list_names, &out, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(out.len ? out.data : "", wanted);
}

static struct uuid add_one(struct bench *b, const char *name)
{
    struct event_batch *batch = event_batch_new();
    struct uuid id = add_session(batch, b, name, 1)->id;

    assert_int_equal(bench_commit(b, batch, NULL), 0);
    return id;
}

static int explain(struct bench *b, const struct uuid *id, const char *reason)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_SESSION_EXPLAINED, 30);

    e->session_change.id = *id;
    e->session_change.reason = strdup(reason);
    return bench_commit(b, batch, NULL);
}

static void events_are_told_in_order(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch;
    struct uuid id;

    assert_listed(b, 0, 0, "");
    id = add_one(b, "one");
    assert_int_equal(explain(b, &id, "no room"), 0);
    assert_listed(b, 0, 0, "session_enqueued session_waiting (no room) ");

    batch = event_batch_new();
    add_status(batch, &id, SESSION_PENDING, SESSION_CANCELLED, 0, "user-requested")
        ->session_status.result = RESULT_FAILURE;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(explain(b, &id, "too late"), 0);
    assert_listed(b, 2, 30, "session_failure (user-requested) session_cancelled (user-requested) ");
    assert_listed(b, 2, 31, "unknown ");
    assert_listed(b, 77, 30, "unknown ");
}

static void what_is_refused_tells_nothing(void **state)
{
    struct bench *b = *state;
    struct uuid id = add_one(b, "one");
    struct outcome outcomes[3] = { { 0 } };

    for (size_t i = 0; i < AQ_COUNT(outcomes); i++) { /* the last two decide on the same version */
        struct event_batch *batch = event_batch_new();

        if (i == 0)
            add_session(batch, b, "two", 1);
        else
            add_status(batch, &id, SESSION_PENDING, SESSION_CANCELLED, 0, "user-requested");
        store_commit(b->store, batch, on_committed, &outcomes[i]);
    }
    store_flush(b->store);
    assert_int_equal(outcomes[0].result, 0);
    assert_int_equal(outcomes[1].result, 0);
    assert_int_equal(outcomes[2].result, -ESTALE);
    assert_listed(b, 0, 0, "session_enqueued session_enqueued session_cancelled (user-requested) ");
}

static int remove_piece(struct store_tx *tx, void *data, struct aq_error *err)
{
    return retention_remove(tx, data, err);
}

static struct session_event_place last_of(struct bench *b)
{
    struct session_event_place place;

    assert_int_equal(store_call(b->store, store_read_last_event, &place, NULL), 0);
    return place;
}

static void a_number_is_never_used_again(void **state)
{
    struct retention_piece piece = {
        .entity = RETENTION_EVENTS, .before_usec = INT64_MAX, .started_usec = 1, .now_usec = 1
    };
    struct bench *b = *state;
    struct session_event_place last;

    (void)add_one(b, "one");
    (void)add_one(b, "two");
    last = last_of(b);
    assert_int_equal(store_call(b->store, remove_piece, &piece, NULL), 0);
    assert_int_equal(piece.removed, last.number - 1);
    assert_true(piece.is_last);
    bench_reopen(b);
    assert_int_equal(last_of(b).number, last.number);
    (void)add_one(b, "three");
    assert_int_equal(last_of(b).number, last.number + 1);
    assert_listed(b, last.number, last.at_usec, "session_enqueued ");
    assert_listed(b, 0, 0, "old session_enqueued session_enqueued ");
    assert_listed(b, 1, last.at_usec, "old session_enqueued session_enqueued ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_are_told_in_order, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_tells_nothing, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(a_number_is_never_used_again, bench_setup, bench_teardown),
    };

    return BENCH_RUN(tests, 0);
}
