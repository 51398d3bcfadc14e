/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while the store opens, loads, commits and lists: what it refuses is not
 * there, what it accepts is, and the next start finds just that.
 */
#include "../store/store_testing.h"

#include <sqlite3.h>

#include "oom.h"
#include "store/fixture.h"
#include "store/query.h"
#include "store/transaction.h"
#include "store/usage_days.h"

static struct bench bench;

/* ---- SQLite's memory counts, too ---- */

#define SQLITE_HEAD 16 /* before each piece: its size */

static void *sqlite_alloc(int size)
{
    int *head = malloc(SQLITE_HEAD + (size_t)size);

    if (!head)
        return NULL;
    *head = size;
    return (char *)head + SQLITE_HEAD;
}

static int *sqlite_head(void *p)
{
    return (int *)(void *)((char *)p - SQLITE_HEAD);
}

static void sqlite_free(void *p)
{
    free(sqlite_head(p));
}

static int sqlite_size(void *p)
{
    return p ? *sqlite_head(p) : 0;
}

static void *sqlite_realloc(void *p, int size)
{
    int *head = realloc(sqlite_head(p), SQLITE_HEAD + (size_t)size);

    if (!head)
        return NULL;
    *head = size;
    return (char *)head + SQLITE_HEAD;
}

static int sqlite_round(int size)
{
    return (size + 7) & ~7;
}

static int sqlite_start(void *data)
{
    (void)data;
    return SQLITE_OK;
}

static void sqlite_stop(void *data)
{
    (void)data;
}

static void sqlite_begin(void)
{
    static const sqlite3_mem_methods methods = {
        .xMalloc = sqlite_alloc,
        .xFree = sqlite_free,
        .xRealloc = sqlite_realloc,
        .xSize = sqlite_size,
        .xRoundup = sqlite_round,
        .xInit = sqlite_start,
        .xShutdown = sqlite_stop,
    };

    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
}

static void sqlite_pass(void)
{
    assert_int_equal(sqlite3_shutdown(), SQLITE_OK);
    oom_pass();
}

/* ---- the store ---- */

static int visit(void *data, struct event *e, struct aq_error *err)
{
    int *sessions = data;

    (void)err;
    *sessions += e->kind == EVENT_SESSION_CREATED;
    return 0;
}

static int list(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct store_query q = {
        .filter = "status == \"PENDING\"", .order = "name", .limit = 10, .with_kernels = true
    };
    int *count = data, r = store_list_sessions(tx, &q, &page, err);

    if (r == 0)
        *count = (int)page->count;
    return r;
}

static void on_list(void *data, int r, const struct aq_error *err)
{
    (void)data;
    oom_check("list", r, err);
}

/* Open; with all the memory there is if it has to be. */
static void open_again(void)
{
    const struct store_conf conf = { .path = bench.path };
    struct aq_error err = { 0 };
    int r = store_open(&conf, &bench.store, &err);

    oom_check("open", r, &err);
    if (r < 0) {
        oom_end();
        bench_open(&bench);
    }
}

static void bench_at(const char *dir)
{
    bench.user_id = (struct uuid){ { 1 } };
    bench.project_id = (struct uuid){ { 2 } };
    (void)snprintf(bench.dir, sizeof(bench.dir), "%.60s", dir);
    (void)snprintf(bench.path, sizeof(bench.path), "%.60s/db", dir);
}

static void prepare(const char *dir)
{
    struct event_batch *batch = event_batch_new();

    bench_at(dir);
    bench_open(&bench);
    add_accounts(batch, &bench.user_id, &bench.project_id);
    (void)add_agent(batch, "i-001");
    (void)add_session(batch, &bench, "first", 2);
    assert_int_equal(bench_commit(&bench, batch, NULL), 0);
    bench_close(&bench);
}

static void run_store(const char *dir)
{
    struct aq_error err = { 0 };
    struct event_batch *batch;
    struct outcome second = { .result = -ENOMEM };
    int loaded = 0, listed = -1, r;

    sqlite_begin();
    bench_at(dir);
    oom_begin();
    open_again();
    r = store_load(bench.store, visit, &loaded, &err);
    oom_check("load", r, &err);
    assert_true(r < 0 || loaded == 1);
    oom_pause(true);
    batch = event_batch_new();
    (void)add_session(batch, &bench, "second", 1);
    oom_pause(false);
    if (store_commit(bench.store, batch, on_committed, &second) < 0) {
        event_batch_free(batch);
    } else {
        store_flush(bench.store);
        assert_true(second.came);
        oom_check("commit", second.result, &second.err);
    }
    if (store_read(bench.store, list, on_list, &listed) == 0)
        store_flush(bench.store);
    oom_end();
    assert_true(listed == -1 || listed == 1 || listed == 2);
    bench_reopen(&bench);
    loaded = 0;
    assert_int_equal(store_load(bench.store, visit, &loaded, &err), 0);
    assert_int_equal(loaded, second.result == 0 ? 2 : 1);
    bench_close(&bench);
    sqlite_pass();
}

/* A database is made where there is none. */
static void run_new(const char *dir)
{
    int loaded = 0;

    sqlite_begin();
    bench_at(dir);
    oom_begin();
    open_again();
    oom_end();
    assert_int_equal(store_load(bench.store, visit, &loaded, NULL), 0);
    bench_close(&bench);
    sqlite_pass();
}

/* One in the working directory, whose key is elsewhere. */
static void run_here(const char *dir)
{
    const struct store_conf conf = { .path = "db", .key_path = "elsewhere" };
    struct aq_error err = { 0 };

    assert_int_equal(chdir(dir), 0);
    oom_begin();
    oom_check("open", store_open(&conf, &bench.store, &err), &err);
    oom_end();
    if (!bench.store)
        assert_int_equal(store_open(&conf, &bench.store, &err), 0);
    bench_close(&bench);
    oom_pass();
}

/* ---- its first rows ---- */

static void prepare_empty(const char *dir)
{
    bench_at(dir);
    bench_open(&bench);
    bench_close(&bench);
}

static int visit_first(void *data, struct event *e, struct aq_error *err)
{
    int *rows = data;

    (void)err;
    if (e->kind == EVENT_RESOURCE_GROUP_SAVED)
        *rows += e->resource_group.scheduler_opts && e->resource_group.driver_opts;
    if (e->kind == EVENT_USER_SAVED)
        *rows += e->user.user.full_name && e->user.user.project_count == 1;
    if (e->kind == EVENT_KEYPAIR_SAVED)
        *rows += e->keypair.is_active;
    return 0;
}

/* All of the administrator is there, or nothing. */
static void run_admin(const char *dir)
{
    struct admin_secrets secrets;
    struct aq_error err = { 0 };
    int rows = 0, r;

    bench_at(dir);
    bench_open(&bench);
    oom_begin();
    r = store_init_admin(bench.store, "ann@example.org", &secrets, &err);
    oom_end();
    oom_check("administrator", r, &err);
    if (r < 0)
        assert_int_equal(store_init_admin(bench.store, "ann@example.org", &secrets, &err), 0);
    bench_reopen(&bench);
    assert_int_equal(store_load(bench.store, visit_first, &rows, NULL), 0);
    assert_int_equal(rows, 3);
    bench_close(&bench);
    oom_pass();
}

/* ---- lists ---- */

/* A session that is on an agent, and what the scheduler made of it. */
static void prepare_lists(const char *dir)
{
    struct event_batch *batch = event_batch_new();
    struct session *s;
    struct event *e;
    struct uuid id, kernel_id;

    bench_at(dir);
    bench_open(&bench);
    add_accounts(batch, &bench.user_id, &bench.project_id);
    (void)add_agent(batch, "i-001");
    s = add_session(batch, &bench, "first", 1);
    id = s->id;
    kernel_id = s->kernels[0].id;
    (void)add_status(batch, &id, SESSION_PENDING, SESSION_SCHEDULED, 0, NULL);
    e = add_kernel_status(batch, &id, &kernel_id, KERNEL_PENDING, KERNEL_SCHEDULED, 0);
    e->kernel_status.agent_id = strdup("i-001");
    e = event_batch_add(batch, EVENT_SESSION_ATTEMPT, 9000);
    e->attempt.row = 1;
    e->attempt.kind = "no-room";
    e->attempt.count = 1;
    e->attempt.detail = strdup("{}");
    assert_int_equal(bench_commit(&bench, batch, NULL), 0);
    bench_close(&bench);
}

/* The ledger names a slot that nothing else does. */
static int damage(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return sql_run_script(tx->db, "UPDATE allocations SET slot = 'odd' WHERE slot = 'mem'", err);
}

static void prepare_odd(const char *dir)
{
    prepare_lists(dir);
    bench_open(&bench);
    assert_int_equal(store_call(bench.store, damage, NULL, NULL), 0);
    bench_close(&bench);
}

static int find_first(struct store_tx *tx, struct uuid *ret, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    const struct store_query q = { .user_id = &bench.user_id };
    int r = store_list_sessions(tx, &q, &page, err);

    if (r < 0)
        return r;
    assert_int_equal(page->count, 1);
    *ret = page->sessions[0].session.id;
    return 0;
}

static int list_past(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *history = NULL, *attempts = NULL, *steps = NULL;
    const struct store_query latest = { .filter = "phase == \"schedule-sessions\"", .limit = 1 };
    struct uuid id;
    int r = find_first(tx, &id, err);

    (void)data;
    if (r == 0)
        r = store_list_history(tx, &id, &history, err);
    if (r == 0)
        r = store_list_attempts(tx, &id, &attempts, err);
    if (r == 0)
        r = store_list_scheduling(tx, &latest, &steps, err);
    if (r < 0)
        return r;
    assert_int_equal(steps->count, 1);
    assert_int_equal(history->count, 3);
    assert_string_equal(history->history[2].status, "SCHEDULED");
    assert_int_equal(attempts->count, 1);
    assert_string_equal(attempts->attempts[0].detail, "{}");
    return 0;
}

static int list_agents(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    int r = store_list_agents(tx, &(struct store_query){ .name = "i-001" }, &page, err);

    (void)data;
    if (r < 0)
        return r;
    assert_int_equal(page->count, 1);
    assert_int_equal(slots_get(&page->agents[0].occupied, "cpu"), 1000000);
    return 0;
}

static int list_users(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    int r = store_list_users(tx, &(struct store_query){ .name = "ann@example.org" }, &page, err);

    (void)data;
    if (r < 0)
        return r;
    assert_int_equal(page->count, 1);
    assert_int_equal(page->users[0].user.project_count, 1);
    return 0;
}

static int visit_usage(void *data, const struct store_usage *row)
{
    int *rows = data;

    *rows += row->amount > 0;
    return 0;
}

static int read_usage(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *days = NULL;
    const struct store_query all = { .until_usec = INT64_MAX, .limit = 10 };
    int rows = 0, r = store_read_usage(tx, 0, visit_usage, &rows, err);

    (void)data;
    assert_true(r < 0 || rows == 2);
    if (r == 0 && (r = store_list_user_days(tx, &all, &days, err)) == 0)
        assert_true(days->count > 0);
    return r;
}

static int audit(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf findings = STRBUF_INIT;
    int r = store_audit_ledger(tx, &findings, err);

    (void)data;
    assert_row(r == -ENOMEM || (r > 0 && strstr(findings.data, "odd")), "%d: %s", r, findings.data);
    return AQ_MIN(r, 0);
}

/* The first to read the names of slots. */
static void run_list(const char *dir, store_tx_fn list_some)
{
    struct aq_error err = { 0 };

    sqlite_begin();
    bench_at(dir);
    bench_open(&bench);
    oom_begin();
    oom_check("list", store_call(bench.store, list_some, NULL, &err), &err);
    oom_end();
    assert_int_equal(store_call(bench.store, list_some, NULL, NULL), 0);
    bench_close(&bench);
    sqlite_pass();
}

static void run_past(const char *dir)
{
    run_list(dir, list_past);
}

static void run_agents(const char *dir)
{
    run_list(dir, list_agents);
}

static void run_users(const char *dir)
{
    run_list(dir, list_users);
}

static void run_usage(const char *dir)
{
    run_list(dir, read_usage);
}

static void run_audit(const char *dir)
{
    run_list(dir, audit);
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "open, load, commit, list", prepare, run_store, NULL },
        { "a new database", NULL, run_new, NULL },
        { "a database in the working directory", NULL, run_here, NULL },
        { "the first administrator", prepare_empty, run_admin, NULL },
        { "the past of a session", prepare_lists, run_past, NULL },
        { "agents and what is held on them", prepare_odd, run_agents, NULL },
        { "users", prepare_lists, run_users, NULL },
        { "what was used", prepare_lists, run_usage, NULL },
        { "an audit of the ledger", prepare_odd, run_audit, NULL },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
