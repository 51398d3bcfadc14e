/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sessions beside a model of them: each filter in each order and each page. */
#include "store_testing.h"

#include "store/migrate.h"
#include "store/query.h"
#include "store/retention.h"
#include "store/session_total.h"

#define COUNT 90
#define BOB_KEY "AKIABBBBBBBBBBBBBBBB"

/* What the model knows of a session. */
struct item {
    int64_t row;
    struct uuid id;
    char name[16];
    enum session_status status;
    enum session_result result;
    const char *image; /* NULL = none */
    int priority;
    int64_t created, changed;
    bool is_bobs, is_gone;
};

struct model {
    struct bench *b;
    struct item items[COUNT + 1];
    struct uuid bob;
};

/* ---- rows ---- */

static void add_bob(struct model *m)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_USER_SAVED, 1000);

    m->bob = uuid_random();
    e->user.user = (struct user){ .id = m->bob,
                                  .username = strdup("bob"),
                                  .email = strdup("bob@example.org"),
                                  .domain = strdup("default"),
                                  .role = ROLE_USER,
                                  .status = USER_ACTIVE };
    e->user.password_hash = strdup("$argon2id$something");
    e = event_batch_add(batch, EVENT_KEYPAIR_SAVED, 1000);
    e->keypair = (struct keypair){ .access_key = BOB_KEY,
                                   .secret_key = "secret-secret-secret-secret-secret-secre",
                                   .user_id = m->bob,
                                   .is_active = true,
                                   .policy = strdup("default") };
    assert_int_equal(bench_commit(m->b, batch, NULL), 0);
}

static void add_end(struct event_batch *batch, const struct item *item)
{
    struct event *e;

    if (item->status == SESSION_CANCELLED) {
        e = add_status(batch, &item->id, SESSION_PENDING, SESSION_CANCELLED, 0, NULL);
    } else {
        add_status(batch, &item->id, SESSION_PENDING, SESSION_SCHEDULED, 0, NULL);
        add_status(batch, &item->id, SESSION_SCHEDULED, SESSION_TERMINATING, 1, NULL);
        e = add_status(batch, &item->id, SESSION_TERMINATING, item->status, 2, NULL);
    }
    e->at_usec = item->changed;
    e->session_status.result = item->result;
}

static void choose_values(struct item *item, int i)
{
    static const char *const images[] = { NULL, "a", "b", "b" };

    *item = (struct item){ .status = i % 10 == 1   ? SESSION_CANCELLED
                                     : i % 15 == 2 ? SESSION_ERROR
                                                   : SESSION_TERMINATED,
                           .image = images[i % 4],
                           .priority = i * 31 % 5,
                           .created = 1000 + i / 3 * 10,
                           .changed = 5000 + i * 37 % 50,
                           .is_bobs = i % 9 == 0 };
    item->result = item->status == SESSION_TERMINATED ? RESULT_SUCCESS : RESULT_FAILURE;
    (void)snprintf(item->name, sizeof(item->name), "s%d", i * 7 % 30);
    if (i % 6 == 0) {
        item->status = SESSION_PENDING;
        item->result = RESULT_UNDEFINED;
        item->changed = item->created;
        (void)snprintf(item->name, sizeof(item->name), "live%d", i);
    }
}

static void add_item(struct model *m, int i)
{
    struct event_batch *batch = event_batch_new();
    struct item *item = &m->items[i];
    struct session *s;

    choose_values(item, i);
    s = add_session(batch, m->b, item->name, 1);
    item->id = s->id;
    s->priority = item->priority;
    s->created_usec = s->status_changed_usec = item->created;
    free(s->image);
    s->image = item->image ? strdup(item->image) : NULL;
    if (item->is_bobs) {
        s->user_id = m->bob;
        strcpy(s->access_key, BOB_KEY);
    }
    if (item->status != SESSION_PENDING)
        add_end(batch, item);
    assert_int_equal(bench_commit(m->b, batch, NULL), 0);
}

static void add_items(struct model *m, struct bench *b)
{
    m->b = b;
    add_bob(m);
    for (int i = 0; i < COUNT; i++)
        add_item(m, i);
}

/* ---- filters and orders ---- */

static bool is_any(const struct item *i)
{
    (void)i;
    return true;
}

static bool is_terminated(const struct item *i)
{
    return i->status == SESSION_TERMINATED;
}

static bool has_ended(const struct item *i)
{
    return i->status != SESSION_PENDING;
}

static bool is_cancelled_b(const struct item *i)
{
    return i->status == SESSION_CANCELLED && i->image && strcmp(i->image, "b") == 0;
}

static bool has_failed(const struct item *i)
{
    return i->result == RESULT_FAILURE;
}

static bool has_image_a(const struct item *i)
{
    return i->image && strcmp(i->image, "a") == 0;
}

static bool has_other_image(const struct item *i)
{
    return i->image && strcmp(i->image, "a") != 0;
}

static bool has_no_image(const struct item *i)
{
    return !i->image;
}

static bool has_priority(const struct item *i)
{
    return i->priority > 2;
}

static bool has_name(const struct item *i)
{
    return strncmp(i->name, "s1", 2) == 0;
}

static bool is_bobs(const struct item *i)
{
    return i->is_bobs;
}

static bool is_anns(const struct item *i)
{
    return !i->is_bobs;
}

static bool is_anns_failure(const struct item *i)
{
    return is_anns(i) && has_failed(i);
}

static bool is_bobs_with_name(const struct item *i)
{
    return i->is_bobs && has_name(i);
}

static bool is_none(const struct item *i)
{
    (void)i;
    return false;
}

#define ENDED (1u << SESSION_TERMINATED | 1u << SESSION_ERROR | 1u << SESSION_CANCELLED)

static const struct model_filter {
    const char *filter;
    bool (*matches)(const struct item *item);
    uint32_t statuses;
    const char *access_key;
    bool by_kinds; /* its total comes from those of kinds */
} filters[] = {
    { NULL, is_any, .by_kinds = true },
    { NULL, has_ended, .statuses = ENDED, .by_kinds = true },
    { NULL, is_terminated, .statuses = 1u << SESSION_TERMINATED, .by_kinds = true },
    { "status == \"terminated\"", is_terminated, .by_kinds = true },
    { "status == \"cancelled\" & image == \"b\"", is_cancelled_b, .by_kinds = true },
    { "result == \"failure\"", has_failed, .by_kinds = true },
    { "image == \"a\"", has_image_a, .by_kinds = true },
    { "image != \"a\"", has_other_image, .by_kinds = true },
    { "!(image == \"a\")", has_other_image, .by_kinds = true },
    { "image is null", has_no_image, .by_kinds = true },
    { "image == \"nope\"", is_none, .by_kinds = true },
    { "user_email == \"bob@example.org\"", is_bobs, .by_kinds = true },
    { "full_name is null | domain_name == \"other\"", is_bobs, .by_kinds = true },
    { "group_name == \"default\"", is_any, .by_kinds = true },
    { "priority > 2", has_priority },
    { "name like \"s1%\"", has_name },
    { "name like \"s1%\"", is_bobs_with_name, .access_key = BOB_KEY },
    { NULL, is_bobs, .access_key = BOB_KEY, .by_kinds = true },
    { NULL, is_anns, .access_key = "AKIAAAAAAAAAAAAAAAAA", .by_kinds = true },
    { "result == \"failure\"", is_anns_failure, .access_key = "AKIAAAAAAAAAAAAAAAAA",
      .by_kinds = true },
};

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_row(const struct item *a, const struct item *b)
{
    return compare_numbers(a->row, b->row);
}

static int by_change(const struct item *a, const struct item *b)
{
    int r = compare_numbers(a->changed, b->changed);

    return r ? r : by_row(a, b);
}

static int by_name(const struct item *a, const struct item *b)
{
    int r = strcmp(a->name, b->name);

    return r ? r : by_row(a, b);
}

static int by_creation(const struct item *a, const struct item *b)
{
    int r = compare_numbers(a->created, b->created);

    return r ? r : by_row(a, b);
}

static int by_priority(const struct item *a, const struct item *b)
{
    int r = compare_numbers(a->priority, b->priority);

    return r ? r : by_row(a, b);
}

/* What is null is the least. */
static int by_image(const struct item *a, const struct item *b)
{
    int r = strcmp(a->image ? a->image : "", b->image ? b->image : "");

    return r ? r : by_row(a, b);
}

static int by_email(const struct item *a, const struct item *b)
{
    return a->is_bobs != b->is_bobs ? a->is_bobs - b->is_bobs : by_row(a, b);
}

static int by_falling_priority_and_name(const struct item *a, const struct item *b)
{
    return a->priority != b->priority ? b->priority - a->priority : by_name(a, b);
}

static const struct model_order {
    const char *order;
    int (*compare)(const struct item *a, const struct item *b);
    bool is_falling;
    const char *index; /* that a page of many is taken from; of a user's own where that differs */
    const char *own_index;
} orders[] = {
    { NULL, by_change, true, "sessions_changed", "sessions_owner_changed" },
    { "status_changed", by_change, false, "sessions_changed", "sessions_owner_changed" },
    { "name", by_name, false, "sessions_by_name", NULL },
    { "-name", by_name, true, "sessions_by_name", NULL },
    { "created_at", by_creation, false, "sessions_by_creation", NULL },
    { "-created_at", by_creation, true, "sessions_by_creation", NULL },
    { "priority", by_priority, false, "sessions_by_priority", "sessions_of_user" },
    { "-priority", by_priority, true, "sessions_by_priority", "sessions_of_user" },
    { "-priority,name", by_falling_priority_and_name, false, NULL, NULL },
    { "image", by_image, false, NULL, NULL },
    { "-image", by_image, true, NULL, NULL },
    { "user_email", by_email, false, NULL, "SCAN s\n" },
    { "-user_email", by_email, true, NULL, "SCAN s\n" },
};

static const struct model_page {
    int64_t limit, offset;
} pages[] = { { 0, 0 }, { 3, 0 }, { 4, 6 }, { 30, 50 }, { 5, 1000 } };

/* ---- comparing ---- */

static const struct model_order *sorted_by;

static int compare_items(const void *a, const void *b)
{
    int r = sorted_by->compare(*(const struct item *const *)a, *(const struct item *const *)b);

    return sorted_by->is_falling ? -r : r;
}

/* Those that match, in the order: how many. */
static size_t list_model(const struct model *m, const struct model_filter *filter,
                         const struct model_order *order, const struct item **ret)
{
    size_t count = 0;

    for (size_t i = 0; i < COUNT; i++)
        if (!m->items[i].is_gone && filter->matches(&m->items[i]))
            ret[count++] = &m->items[i];
    sorted_by = order;
    qsort(ret, count, sizeof(*ret), compare_items);
    return count;
}

struct question {
    struct store_query query;
    struct store_page *page;
};

static int read_list(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct question *question = data;

    return store_list_sessions(tx, &question->query, &question->page, err);
}

static struct store_query make_query(const struct model_filter *filter,
                                     const struct model_order *order, struct model_page page)
{
    return (struct store_query){ .statuses = filter->statuses,
                                 .access_key = filter->access_key,
                                 .filter = filter->filter,
                                 .order = order->order,
                                 .limit = page.limit,
                                 .offset = page.offset };
}

static void check_page(const struct model *m, const struct model_filter *filter,
                       const struct model_order *order, struct model_page page)
{
    struct question question = { .query = make_query(filter, order, page) };
    const struct item *want[COUNT];
    size_t total = list_model(m, filter, order, want);
    size_t offset = AQ_MIN((size_t)page.offset, total), count = total - offset;
    const char *filter_text = filter->filter ? filter->filter : "-";
    const char *order_text = order->order ? order->order : "-";
    struct aq_error err = { 0 };

    if (page.limit)
        count = AQ_MIN(count, (size_t)page.limit);
    assert_row(store_call(m->b->store, read_list, &question, &err) == 0, "%s", err.text);
    assert_row(question.page->total == (int64_t)total && question.page->count == count,
               "%s by %s at %lld: %zu of %lld, not %zu of %zu", filter_text, order_text,
               (long long)page.offset, question.page->count, (long long)question.page->total, count,
               total);
    for (size_t i = 0; i < count; i++)
        assert_row(uuid_equals(&question.page->sessions[i].session.id, &want[offset + i]->id),
                   "%s by %s at %lld: row %zu is %s, not %s", filter_text, order_text,
                   (long long)page.offset, i, question.page->sessions[i].session.name,
                   want[offset + i]->name);
    store_page_free(question.page);
}

static const struct model_range {
    bool has_after, has_before, is_from_end;
    int64_t limit, offset;
} ranges[] = {
    { false, false, false, 0, 0 }, { true, false, false, 5, 0 },   { true, true, false, 100, 2 },
    { true, true, true, 3, 1 },    { false, true, true, 4, 0 },    { false, false, true, 6, 3 },
    { true, false, false, 2, 99 }, { false, true, true, 100, 99 },
};

/* Between the rows at a quarter and three quarters of the list. */
static void check_range(const struct model *m, const struct model_filter *filter,
                        const struct model_order *order, const struct model_range *range)
{
    const struct item *want[COUNT];
    int64_t total = (int64_t)list_model(m, filter, order, want), low = total / 4,
            high = total - low;
    int64_t from = range->has_after ? low + 1 : 0, to = range->has_before ? high - 1 : total, count;
    struct store_range asked = { .limit = range->limit,
                                 .offset = range->offset,
                                 .is_from_end = range->is_from_end };
    struct question question = { .query = make_query(filter, order, (struct model_page){ 0, 0 }) };
    char ids[2][UUID_TEXT_MAX];
    struct aq_error err = { 0 };

    if (total < 8)
        return;
    if (range->has_after)
        asked.after = uuid_format(&want[low]->id, ids[0]);
    if (range->has_before)
        asked.before = uuid_format(&want[high - 1]->id, ids[1]);
    if (range->is_from_end) {
        to = AQ_MAX(to - range->offset, from);
        from = AQ_MAX(to - range->limit, from);
    } else {
        from = AQ_MIN(from + range->offset, to);
        to = AQ_MIN(from + range->limit, to);
    }
    count = to - from;
    question.query.range = &asked;
    assert_row(store_call(m->b->store, read_list, &question, &err) == 0, "%s", err.text);
    assert_row((int64_t)question.page->count == count && question.page->first == from
                   && question.page->total == total,
               "%s by %s, range %zu: %zu from %lld, not %lld from %lld", filter->filter,
               order->order, (size_t)(range - ranges), question.page->count,
               (long long)question.page->first, (long long)count, (long long)from);
    for (int64_t i = 0; i < count; i++)
        assert_true(uuid_equals(&question.page->sessions[i].session.id, &want[from + i]->id));
    store_page_free(question.page);
}

static void check_missing(const struct model *m)
{
    struct store_range range = { .after = "0e5f3c1a-0000-4000-8000-000000000000", .limit = 1 };
    struct question question = { .query = { .range = &range } };
    struct aq_error err = { 0 };

    assert_int_equal(store_call(m->b->store, read_list, &question, &err), -EINVAL);
    assert_string_equal(err.field, "after");
    assert_null(question.page);
}

static int audit(struct store_tx *tx, void *data, struct aq_error *err)
{
    return session_total_audit(tx, data, err);
}

static void check_all(const struct model *m)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf findings = STRBUF_INIT;

    for (size_t f = 0; f < AQ_COUNT(filters); f++)
        for (size_t o = 0; o < AQ_COUNT(orders); o++) {
            for (size_t p = 0; p < AQ_COUNT(pages); p++)
                check_page(m, &filters[f], &orders[o], pages[p]);
            for (size_t p = 0; p < AQ_COUNT(ranges); p++)
                check_range(m, &filters[f], &orders[o], &ranges[p]);
        }
    assert_int_equal(store_call(m->b->store, audit, &findings, NULL), 0);
}

/* ---- tests ---- */

/* Rows of the model are those of the store: in the order of their creation. */
static void number_items(struct model *m)
{
    for (int i = 0; i < COUNT; i++)
        m->items[i].row = i + 1;
}

static int remove_old(struct store_tx *tx, void *data, struct aq_error *err)
{
    return retention_remove(tx, data, err);
}

static void test_pages(void **state)
{
    struct model m = { 0 };

    add_items(&m, *state);
    number_items(&m);
    check_all(&m);
    check_missing(&m);
}

/* The same after some were renamed, others ended or were removed. */
static void test_changes(void **state)
{
    struct retention_piece piece = {
        .entity = RETENTION_SESSIONS, .before_usec = 5020, .started_usec = 6000, .now_usec = 6000
    };
    struct event_batch *batch = event_batch_new();
    struct model m = { 0 };
    struct event *e;

    add_items(&m, *state);
    number_items(&m);
    e = event_batch_add(batch, EVENT_SESSION_RENAMED, 5100);
    e->session_change.id = m.items[6].id;
    strcpy(e->session_change.name, "s1x");
    strcpy(m.items[6].name, "s1x");
    for (int i = 12; i < 40; i += 6) {
        m.items[i].status = SESSION_CANCELLED;
        m.items[i].result = RESULT_FAILURE;
        m.items[i].changed = 5100 + i;
        add_end(batch, &m.items[i]);
    }
    assert_int_equal(bench_commit(m.b, batch, NULL), 0);
    check_all(&m);
    assert_int_equal(store_call(m.b->store, remove_old, &piece, NULL), 0);
    assert_true(piece.is_last && piece.removed > 10);
    for (int i = 0; i < COUNT; i++)
        m.items[i].is_gone = has_ended(&m.items[i]) && m.items[i].changed < 5020;
    check_all(&m);
}

static const struct migration *find_migration(const char *name)
{
    for (size_t i = 0; i < store_migration_count; i++)
        if (strstr(store_migrations[i].name, name))
            return &store_migrations[i];
    fail_msg("there is no migration %s", name);
    return NULL;
}

/* A database that is older than its totals gets them. */
static void test_old_database(void **state)
{
    struct model m = { 0 };
    struct sql *db;

    add_items(&m, *state);
    number_items(&m);
    bench_close(m.b);
    db = bench_open_sql(m.b);
    assert_int_equal(sql_run_script(db,
                                    "DROP TABLE session_totals; DROP INDEX sessions_by_creation;"
                                    " DROP INDEX sessions_by_priority",
                                    NULL),
                     0);
    assert_int_equal(sql_run_script(db, find_migration("add_session_totals")->script, NULL), 0);
    sql_close(db);
    bench_open(m.b);
    check_all(&m);
}

/* Totals that are not those of the rows are found. */
static void test_wrong_totals(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf findings = STRBUF_INIT;
    struct model m = { 0 };
    struct sql *db;

    add_items(&m, *state);
    bench_close(m.b);
    db = bench_open_sql(m.b);
    assert_int_equal(sql_run_script(db,
                                    "UPDATE session_totals SET sessions = sessions + 1 WHERE"
                                    " status = 'ERROR' AND image = 'a'",
                                    NULL),
                     0);
    sql_close(db);
    bench_open(m.b);
    assert_int_equal(store_call(m.b->store, audit, &findings, NULL), 1);
    assert_non_null(strstr(findings.data, "totals"));
}

/* ---- what the engine does ---- */

/* The statements of a list, one a line. */
static struct strbuf statements;

static int note_statement(struct sql *db, const char *text, enum sql_use use, struct sql_stmt **ret,
                          struct aq_error *err)
{
    strbuf_addf(&statements, "%s\n", text);
    return sql_sqlite.prepare(db, text, use, ret, err);
}

/* How SQLite runs the one that walks along an index, if there is one. */
static bool explain_walk(struct sql *db, struct strbuf *ret)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    const char *line = statements.data;

    if (!strstr(line, "ROW_NUMBER"))
        return false;
    for (const char *next = line; (next = strchr(next, '\n')) && strstr(next, "ROW_NUMBER");)
        line = ++next;
    text = aq_format("EXPLAIN QUERY PLAN %.*s", (int)strcspn(line, "\n"), line);
    assert_int_equal(sql_prepare_once(db, text, &q, NULL), 0);
    while (sql_step(q, NULL) > 0) {
        for (int i = 0; i < 3; i++)
            (void)sql_get_int(q);
        strbuf_addf(ret, "%s\n", sql_get_text(q));
    }
    return true;
}

/* Many sessions are counted by their kinds, and taken from the index of their order. */
static void test_plans(void **state)
{
    static struct sql_ops noting;
    struct model m = { 0 };

    add_items(&m, *state);
    noting = sql_sqlite;
    noting.prepare = note_statement;
    for (size_t f = 0; f < AQ_COUNT(filters); f++)
        for (size_t o = 0; o < AQ_COUNT(orders); o++) {
            const struct sql_conf conf = { .where = m.b->path, .cache_bytes = 1 << 20 };
            const struct model_order *order = &orders[o];
            AQ_CLEANUP(strbuf_donep) struct strbuf plan = STRBUF_INIT;
            AQ_CLEANUP(sql_closep) struct sql *db = NULL; /* that has kept no statement yet */
            struct question question = { .query = make_query(&filters[f], order,
                                                             (struct model_page){ 2, 0 }) };
            const char *index = filters[f].access_key && order->own_index ? order->own_index
                                                                          : order->index;

            strbuf_clear(&statements);
            assert_int_equal(sql_open(&noting, &conf, &db, NULL), 0);
            assert_int_equal(read_list(&(struct store_tx){ .db = db }, &question, NULL), 0);
            assert_row(filters[f].by_kinds == (strstr(statements.data, "session_totals") != NULL),
                       "%zu: %s", f, statements.data);
            if (index && question.page->total * question.page->total >= 2 * COUNT) {
                assert_row(explain_walk(db, &plan), "%zu by %s: %s", f, order->order,
                           statements.data);
                assert_row(strstr(plan.data, index), "%zu by %s:\n%s", f, order->order, plan.data);
                assert_row(!strstr(plan.data, "RIGHT PART"), "%zu by %s:\n%s", f, order->order,
                           plan.data);
            }
            store_page_free(question.page);
        }
    strbuf_done(&statements);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_changes, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_old_database, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_totals, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_plans, bench_setup, bench_teardown), /* files */
    };

    return BENCH_RUN(tests, 1);
}
