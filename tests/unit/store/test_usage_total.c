/* SPDX-License-Identifier: Apache-2.0 */
/* What was held in a time is summed by whom and where, for the part that lies in it. */
#include "store_testing.h"

#include <string.h>

#include "store/transaction.h"
#include "store/usage_days.h"
#include "store/usage_total.h"

#define MINUTE (INT64_C(60) * 1000000)
#define DAY (1440 * MINUTE)

/* "held" has 2 processors from 23:57 to 00:03, "live" one and 1 GiB since 00:00 of the second
 * day; of a removed session there are a processor and two GPUs for an hour before its end.
 */
static const char rows[] =
    "UPDATE sessions SET resource_group = 'gpus' WHERE name = 'held';"
    "UPDATE sessions SET status = 'TERMINATED', status_changed_at = 86580000000,"
    " terminated_at = 86580000000 WHERE name = 'held';"
    "INSERT INTO allocations (session_seq, rank, version, slot, agent_id, amount, taken_at, free_at)"
    " SELECT seq, 0, 1, 'cpu', 'i-1', 2000000, 86220000000, 86580000000 FROM sessions"
    " WHERE name = 'held';"
    "INSERT INTO allocations (session_seq, rank, version, slot, agent_id, amount, taken_at)"
    " SELECT seq, 0, 1, 'cpu', 'i-1', 1000000, 86400000000 FROM sessions WHERE name = 'live';"
    "INSERT INTO allocations (session_seq, rank, version, slot, agent_id, amount, taken_at)"
    " SELECT seq, 0, 1, 'mem', 'i-1', 1073741824, 86400000000 FROM sessions WHERE name = 'live';"
    "INSERT INTO removed_usage (session_seq, rank, version, slot, resource_group, domain,"
    " project_id, user_id, amount, taken_at, free_at)"
    " SELECT -1, 0, 1, 'cpu', 'gpus', domain, project_id, user_id, 1000000, 3600000000, 7200000000"
    " FROM sessions WHERE name = 'live';"
    "INSERT INTO removed_usage (session_seq, rank, version, slot, resource_group, domain,"
    " project_id, user_id, amount, taken_at, free_at)"
    " SELECT -1, 0, 1, 'cuda.device', 'gpus', domain, project_id, user_id, 2000000, 3600000000,"
    " 7200000000 FROM sessions WHERE name = 'live'";

static int run_rows(struct store_tx *tx, void *data, struct aq_error *err)
{
    return sql_run_script(tx->db, data, err);
}

static void fill(struct bench *b)
{
    struct event_batch *batch = event_batch_new();
    struct aq_error err = { 0 };

    add_agent(batch, "i-1");
    add_session(batch, b, "held", 1);
    add_session(batch, b, "live", 1);
    if (bench_commit(b, batch, &err) < 0
        || store_call(b->store, run_rows, (void *)(uintptr_t)rows, &err) < 0)
        fail_msg("%s", err.text);
}

/* ---- as text ---- */

struct asked {
    struct usage_total_query query;
    struct strbuf out;
};

/* "cpu 360 1": in units and seconds, of so many sessions. */
static int write_total(void *data, const struct usage_total *row)
{
    bool is_bytes = strcmp(row->slot, "mem") == 0;
    double units = is_bytes ? 1 << 30 : (double)AMOUNT_ONE;
    struct asked *a = data;

    strbuf_addf(&a->out, "%s%s%s%s%s %s %.6g %lld\n", row->domain ? row->domain : "",
                row->project ? "/" : "", row->project ? row->project : "", row->user ? "@" : "",
                row->resource_group ? row->resource_group : "", row->slot, row->held / units / 1e6,
                (long long)row->sessions);
    return 0;
}

static int read_total(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *a = data;

    return store_read_usage_total(tx, &a->query, write_total, a, err);
}

static void check(struct bench *b, struct usage_total_query query, const char *expected)
{
    struct asked a = { .query = query, .out = STRBUF_INIT };
    struct aq_error err = { 0 };

    if (store_call(b->store, read_total, &a, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(a.out.data ? a.out.data : "", expected);
    strbuf_done(&a.out);
}

/* ---- tests ---- */

static void test_a_day_has_what_was_held_in_it(void **state)
{
    struct bench *b = *state;

    fill(b);
    check(b, (struct usage_total_query){ .from_usec = DAY - 60 * MINUTE, .until_usec = DAY },
          "default cpu 360 1\n");
    check(b, (struct usage_total_query){ .from_usec = DAY, .until_usec = DAY + 10 * MINUTE },
          "default cpu 960 2\ndefault mem 600 1\n");
    check(b, (struct usage_total_query){ .from_usec = 0, .until_usec = DAY },
          "default cpu 3960 2\ndefault cuda.device 7200 1\n");
    check(b, (struct usage_total_query){ .from_usec = 130 * MINUTE, .until_usec = 140 * MINUTE },
          "");
}

static void test_by_whom_and_where(void **state)
{
    struct usage_total_query query = { .from_usec = 0, .until_usec = DAY + 10 * MINUTE };
    struct bench *b = *state;
    struct uuid other = b->user_id;

    fill(b);
    query.by = USAGE_BY_PROJECT;
    check(b, query,
          "default/default cpu 4920 3\ndefault/default cuda.device 7200 1\n"
          "default/default mem 600 1\n");
    query.by = USAGE_BY_USER;
    check(b, query, "default@ cpu 4920 3\ndefault@ cuda.device 7200 1\ndefault@ mem 600 1\n");
    query.by = USAGE_BY_RESOURCE_GROUP;
    check(b, query,
          "default cpu 600 1\ndefault mem 600 1\ngpus cpu 4320 2\ngpus cuda.device 7200 1\n");
    query.resource_group = "gpus";
    query.project_id = &b->project_id;
    query.user_id = &b->user_id;
    query.domain = "default";
    check(b, query, "gpus cpu 4320 2\ngpus cuda.device 7200 1\n");
    other.bytes[0] ^= 1;
    query.user_id = &other;
    check(b, query, "");
}

/* ---- by day ---- */

static int read_days(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct store_page **page = data;
    const struct store_query query = {
        .since_usec = 0, .until_usec = 2 * DAY, .offset = 1, .limit = 2, .order = "period_start"
    };

    return store_list_user_days(tx, &query, page, err);
}

/* "gpus 1 cpu 360": on the second day. */
static void write_day(const struct usage_day *day, struct strbuf *out)
{
    strbuf_addf(out, "%s %lld", day->resource_group, (long long)(day->day_usec / DAY));
    for (const struct usage_day_slot *slot = day->slots; slot; slot = slot->next)
        if (strcmp(slot->name, "mem") != 0)
            strbuf_addf(out, " %s %.6g", slot->name, slot->amount_sec / (double)AMOUNT_ONE);
    strbuf_adds(out, "\n");
}

static void test_days_are_parted_at_midnight(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct bench *b = *state;
    struct aq_error err = { 0 };

    fill(b);
    if (store_call(b->store, read_days, &page, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(page->total, 3);
    assert_int_equal(page->count, 2);
    for (size_t i = 0; i < page->count; i++) {
        const struct usage_day *day = (const struct usage_day *)page->rows + i;

        assert_true(uuid_equals(&day->user, &b->user_id));
        assert_true(uuid_equals(&day->project, &b->project_id));
        write_day(day, &out);
    }
    assert_string_equal(out.data, "default 1 cpu 86400\ngpus 1 cpu 360\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_day_has_what_was_held_in_it),
        TEST(test_by_whom_and_where),
        TEST(test_days_are_parted_at_midnight),
    };

    return BENCH_RUN(tests, 0);
}
