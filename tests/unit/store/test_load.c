/* SPDX-License-Identifier: Apache-2.0 */
/* Loading in parts: the registry, and sessions page by page. */
#include "store/store_testing.h"

#include <stdio.h>
#include <string.h>

#include "store/transaction.h"

#define SESSIONS 7
#define PAGE 3

/* store_tx_fn: the registry, then pages of the sessions that live, as text */
static int load_in_parts(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) int64_t *rows = NULL;
    size_t count = 0;
    int r = store_load_registry(tx, write_event, data, err);

    if (r == 0)
        r = store_list_living(tx, &rows, &count, err);
    for (size_t i = 0; r == 0 && i < count; i += PAGE)
        r = store_load_sessions(tx, rows + i, AQ_MIN(count - i, (size_t)PAGE), write_event, data,
                                err);
    return r;
}

/* Two kernels each; each but the first waits for the one before. */
static void add_chain(struct bench *b, struct uuid ids[SESSIONS])
{
    struct event_batch *batch = event_batch_new();

    for (int i = 0; i < SESSIONS; i++) {
        char name[16];
        struct session *s;

        (void)snprintf(name, sizeof(name), "chain-%d", i);
        s = add_session(batch, b, name, 2);
        ids[i] = s->id;
        if (i == 0)
            continue;
        s->dependencies = calloc(1, sizeof(*s->dependencies));
        assert_non_null(s->dependencies);
        s->dependencies[s->dependency_count++].id = ids[i - 1];
    }
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

static void end_session(struct bench *b, const struct uuid *id)
{
    struct event_batch *batch = event_batch_new();

    (void)add_status(batch, id, SESSION_PENDING, SESSION_CANCELLED, 0, "cancelled");
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

static size_t count_lines(const char *text, const char *of)
{
    size_t count = 0;

    while ((text = strstr(text, of))) {
        count++;
        text += strlen(of);
    }
    return count;
}

/* The parts come to what the whole is, whichever sessions have ended. */
static void test_parts_are_the_whole(void **state)
{
    struct bench *b = *state;
    struct uuid ids[SESSIONS];

    add_chain(b, ids);
    for (int ended = 0; ended <= SESSIONS; ended++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf parts = STRBUF_INIT;
        AQ_CLEANUP(aq_freep) char *whole = bench_dump(b);

        assert_int_equal(store_call(b->store, load_in_parts, &parts, NULL), 0);
        assert_string_equal(parts.data, whole);
        assert_int_equal(count_lines(whole, "chain-"), SESSIONS - ended);
        if (ended < SESSIONS) /* 0, 3, 6, 2, ... */
            end_session(b, &ids[ended * 3 % SESSIONS]);
    }
}

struct page {
    int64_t rows[SESSIONS];
    size_t count;
    struct strbuf text;
};

/* store_tx_fn */
static int load_page(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct page *page = data;

    return store_load_sessions(tx, page->rows, page->count, write_event, &page->text, err);
}

/* store_tx_fn */
static int list_page(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) int64_t *rows = NULL;
    struct page *page = data;
    int r = store_list_living(tx, &rows, &page->count, err);

    for (size_t i = 0; r == 0 && i < AQ_MIN(page->count, (size_t)SESSIONS); i++)
        page->rows[i] = rows[i];
    return r;
}

/* Of the rows that a page names, those that have ended since are left out. */
static void test_ended_ones_are_left_out(void **state)
{
    struct bench *b = *state;
    struct page page = { .text = STRBUF_INIT };
    struct uuid ids[SESSIONS];

    add_chain(b, ids);
    assert_int_equal(store_call(b->store, list_page, &page, NULL), 0);
    assert_int_equal(page.count, SESSIONS);
    end_session(b, &ids[2]);
    assert_int_equal(store_call(b->store, load_page, &page, NULL), 0);
    assert_int_equal(count_lines(page.text.data, "chain-"), SESSIONS - 1);
    assert_null(strstr(page.text.data, "chain-2"));
    strbuf_clear(&page.text);
    page.count = 0;
    assert_int_equal(store_call(b->store, load_page, &page, NULL), 0);
    assert_int_equal(page.text.len, 0);
    strbuf_done(&page.text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts_are_the_whole, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_ended_ones_are_left_out, bench_setup, bench_teardown),
    };

    return BENCH_RUN(tests, 0);
}
