/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while the store opens, loads, commits and lists: what it refuses is not
 * there, what it accepts is, and the next start finds just that.
 */
#include "../store/store_testing.h"

#include <sqlite3.h>

#include "oom.h"
#include "store/query.h"

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

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "open, load, commit, list", prepare, run_store, NULL },
        { "a new database", NULL, run_new, NULL },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
