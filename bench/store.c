/* SPDX-License-Identifier: Apache-2.0 */
/* bench/store - durable creations of sessions per second through store_commit()
 *
 * Each batch holds one session of one kernel. In each round, each with a fresh
 * database: single-row transactions of SQLite alone (WAL, synchronous=FULL) as
 * the measure of the disk, then 1, 4 and 64 outstanding batches. With --server,
 * a URI with %s for a database's name, the database is on that PostgreSQL server,
 * and each is paired with a bare program that writes the same. The last line is
 * one JSON object with medians over the rounds. With --load, it is how long as many
 * pending sessions take to load from a file, or from the server.
 *
 *     bench/store [--dir FOLDER] [--count SESSIONS] [--rounds N] [--server URI] [--load SESSIONS]
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "bench_database.h"
#include "store/fixture.h"
#include "store/sql_module.h"
#include "store/store.h"
#include "store_pipeline.h"

struct run {
    struct store *store;
    struct uuid user_id, project_id;
    size_t count, sent, done;
    int result;
};

static void on_committed(void *data, int result, const struct aq_error *err,
                         struct event_batch *batch);

static struct event_batch *make_batch(const struct run *run)
{
    struct event_batch *batch = event_batch_new();
    struct session *s = &event_batch_add(batch, EVENT_SESSION_CREATED, 1)->session;

    *s = (struct session){ .id = uuid_random(),
                           .type = SESSION_BATCH,
                           .priority = 10,
                           .user_id = run->user_id,
                           .project_id = run->project_id,
                           .access_key = "AKIAIOSFODNN7EXAMPLE",
                           .domain = strdup("default"),
                           .resource_group = strdup("default"),
                           .spec = session_spec_copy(
                               &(struct session_spec){ .image = "", .command = "true" }),
                           .created_usec = clock_realtime_usec(),
                           .kernels = calloc(1, sizeof(*s->kernels)),
                           .kernel_count = 1 };
    (void)snprintf(s->name, sizeof(s->name), "bench-%zu", run->sent);
    s->status_changed_usec = s->created_usec;
    if (!s->kernels)
        return batch;
    s->kernels[0] = (struct kernel){
        .id = uuid_random(), .role = "main", .index = 1, .status_changed_usec = s->created_usec
    };
    if (slots_set(&s->kernels[0].requested, slot_name_intern("cpu", 3), AMOUNT_ONE) < 0
        || slots_set(&s->kernels[0].requested, slot_name_intern("mem", 3), 1 << 30) < 0)
        abort();
    return batch;
}

static void send_one(struct run *run)
{
    struct event_batch *batch = make_batch(run);

    run->sent++;
    store_commit(run->store, batch, on_committed, run);
}

static void on_committed(void *data, int result, const struct aq_error *err,
                         struct event_batch *batch)
{
    struct run *run = data;

    if (result < 0 && run->result == 0) {
        (void)fprintf(stderr, "bench/store: %s\n", err->text);
        run->result = result;
    }
    event_batch_free(batch);
    run->done++;
    if (run->sent < run->count && run->result == 0)
        send_one(run);
}

static int find_accounts(void *data, struct event *e, struct aq_error *err)
{
    struct run *run = data;

    (void)err;
    if (e->kind == EVENT_PROJECT_SAVED)
        run->project_id = e->project.id;
    if (e->kind == EVENT_USER_SAVED)
        run->user_id = e->user.user.id;
    return 0;
}

/* The engine itself, in place of the module. */
int sql_load_postgres(const struct sql_ops **ret, struct aq_error *err)
{
    (void)err;
    *ret = aq_sql_module.ops;
    return 0;
}

/* Sessions per second, or a negative errno. 'uri' NULL = a file; else 'ret_bare' is
 * what a bare program does beside.
 */
static double measure(const char *dir, const char *uri, size_t count, size_t outstanding,
                      double *ret_bare, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = uri ? strdup(uri) : aq_format("%s/store.db", dir);
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/store.db.key", dir);
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    struct run run = { .count = count };
    char user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    int64_t began;
    int r = store_open(&(struct store_conf){ .path = path, .key_path = key }, &store, err);

    if (r == 0)
        r = store_init_dev(store, err);
    if (r == 0)
        r = store_load(store, find_accounts, &run, err);
    if (r < 0)
        return r;
    run.store = store;
    if (uri)
        *ret_bare = pipeline_measure(
            uri,
            &(struct pipeline_owner){ uuid_format(&run.user_id, user),
                                      uuid_format(&run.project_id, project) },
            count, outstanding);
    began = clock_monotonic_usec();
    while (run.sent < outstanding)
        send_one(&run);
    store_flush(store);
    return run.result < 0 ? run.result
                          : (double)run.done * 1e6 / (double)(clock_monotonic_usec() - began);
}

/* Transactions per second of SQLite alone; -1 if it does not work here. */
static double measure_raw(const char *dir, size_t count)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/raw.db", dir);
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    int64_t began;
    bool ok = sqlite3_open(path, &db) == SQLITE_OK
              && sqlite3_exec(db,
                              "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                              "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)",
                              NULL, NULL, NULL)
                     == SQLITE_OK
              && sqlite3_prepare_v2(db, "INSERT INTO t (b) VALUES ('a row of text')", -1, &q, NULL)
                     == SQLITE_OK;

    began = clock_monotonic_usec();
    for (size_t i = 0; ok && i < count; i++)
        ok = sqlite3_step(q) == SQLITE_DONE && sqlite3_reset(q) == SQLITE_OK;
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(db);
    return ok ? (double)count * 1e6 / (double)(clock_monotonic_usec() - began) : -1;
}

/* ---- rounds ---- */

#define ROUNDS_MAX 15
static const size_t outstanding[] = { 1, 4, 64 };
#define COLUMNS (AQ_COUNT(outstanding) + 1) /* the first is SQLite alone */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

/* One column of figures each for the raw rate and each number outstanding. */
static bool run_round(const char *dir, size_t count, size_t round,
                      double rates[COLUMNS][ROUNDS_MAX])
{
    struct aq_error err = { 0 };

    for (size_t i = 0; i < COLUMNS; i++) {
        if (mkdir(dir, 0700) < 0) {
            perror(dir);
            return false;
        }
        rates[i][round] = i == 0 ? measure_raw(dir, count)
                                 : measure(dir, NULL, count, outstanding[i - 1], NULL, &err);
        (void)fs_remove_tree(AT_FDCWD, dir, NULL);
        if (rates[i][round] < 0) {
            (void)fprintf(stderr, "bench/store: %s\n", i == 0 ? "SQLite" : err.text);
            return false;
        }
    }
    return true;
}

/* ---- a server ---- */

/* Ratios to the bare program, and rates, of each number outstanding. */
struct server_figures {
    double ratios[AQ_COUNT(outstanding)][ROUNDS_MAX], rates[AQ_COUNT(outstanding)][ROUNDS_MAX];
};

static bool run_on_server(const char *dir, const char *server, size_t count, size_t together,
                          double *ret_rate, double *ret_ratio)
{
    struct bench_database db = { .uri = NULL };
    struct aq_error err = { 0 };
    double bare = -1;

    *ret_rate = -1;
    if (bench_database_make(&db, server) && mkdir(dir, 0700) == 0)
        *ret_rate = measure(dir, db.uri, count, together, &bare, &err);
    if (*ret_rate < 0)
        (void)fprintf(stderr, "bench/store: %s\n", err.text);
    *ret_ratio = *ret_rate / bare;
    (void)fs_remove_tree(AT_FDCWD, dir, NULL);
    bench_database_drop(&db);
    return *ret_rate >= 0 && bare > 0;
}

static int run_server(const char *dir, const char *server, size_t count, size_t rounds)
{
    static struct server_figures figures;

    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < AQ_COUNT(outstanding); i++)
            if (!run_on_server(dir, server, count, outstanding[i], &figures.rates[i][round],
                               &figures.ratios[i][round]))
                return 1;
    printf("{\"bench\":\"store\",\"engine\":\"postgresql\",\"sessions\":%zu,\"rounds\":%zu", count,
           rounds);
    for (size_t i = 0; i < AQ_COUNT(outstanding); i++)
        printf(",\"created_per_s_%zu\":%.0f,\"of_bare_%zu\":%.2f", outstanding[i],
               median(figures.rates[i], rounds), outstanding[i], median(figures.ratios[i], rounds));
    printf("}\n");
    return 0;
}

static void print_result(size_t count, size_t rounds, double rates[COLUMNS][ROUNDS_MAX])
{
    double ratios[ROUNDS_MAX];

    for (size_t i = 0; i < rounds; i++)
        ratios[i] = rates[2][i] / rates[0][i];
    printf("{\"bench\":\"store\",\"sessions\":%zu,\"rounds\":%zu,\"sqlite_tx_per_s\":%.0f", count,
           rounds, median(rates[0], rounds));
    for (size_t i = 1; i < COLUMNS; i++)
        printf(",\"created_per_s_%zu\":%.0f", outstanding[i - 1], median(rates[i], rounds));
    printf(",\"ratio_4\":%.2f}\n", median(ratios, rounds));
}

/* ---- loading ---- */

static int count_sessions(void *data, struct event *e, struct aq_error *err)
{
    (void)err;
    *(size_t *)data += e->kind == EVENT_SESSION_CREATED;
    return 0;
}

/* How long a store_load() of 'count' pending sessions takes, in seconds; -1 if it does not work. */
static double measure_load(const struct store_conf *conf, size_t count, struct aq_error *err)
{
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    struct run run = { .count = count };
    size_t found = 0;
    int64_t began;
    int r = store_open(conf, &store, err);

    if (r == 0)
        r = store_init_dev(store, err);
    if (r == 0)
        r = store_load(store, find_accounts, &run, err);
    if (r < 0)
        return -1;
    run.store = store;
    while (run.sent < AQ_MIN(count, (size_t)1000))
        send_one(&run);
    store_flush(store);
    store_close(AQ_TAKE(store));
    if (run.result < 0 || store_open(conf, &store, err) < 0)
        return -1;
    began = clock_monotonic_usec();
    if (store_load(store, count_sessions, &found, err) < 0 || found != count)
        return -1;
    return (double)(clock_monotonic_usec() - began) / 1e6;
}

static int run_load(const char *dir, const char *server, size_t count)
{
    struct bench_database db = { .uri = NULL };
    AQ_CLEANUP(aq_freep) char *file = aq_format("%s/store.db", dir);
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/store.db.key", dir);
    struct aq_error err = { 0 };
    double seconds = -1;

    if (mkdir(dir, 0700) == 0 && (!server || bench_database_make(&db, server)))
        seconds = measure_load(
            &(struct store_conf){ .path = db.uri ? db.uri : file, .key_path = key }, count, &err);
    if (seconds < 0)
        (void)fprintf(stderr, "bench/store: %s\n", err.text);
    (void)fs_remove_tree(AT_FDCWD, dir, NULL);
    bench_database_drop(&db);
    printf("{\"bench\":\"store\",\"engine\":\"%s\",\"loaded\":%zu,\"seconds\":%.2f}\n",
           server ? "postgresql" : "sqlite", count, seconds);
    return seconds < 0;
}

int main(int argc, char **argv)
{
    AQ_CLEANUP(aq_freep) char *dir = NULL;
    static double rates[COLUMNS][ROUNDS_MAX];
    const char *parent = ".", *server = NULL;
    size_t count = 5000, rounds = 3, load = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0)
            parent = argv[i + 1];
        else if (strcmp(argv[i], "--count") == 0)
            count = (size_t)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = (size_t)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--server") == 0)
            server = argv[i + 1];
        else if (strcmp(argv[i], "--load") == 0)
            load = (size_t)strtoul(argv[i + 1], NULL, 10);
    }
    rounds = AQ_MIN(AQ_MAX(rounds, (size_t)1), (size_t)ROUNDS_MAX);
    dir = aq_format("%s/bench-store-%ld", parent, (long)getpid());
    if (dir && load)
        return run_load(dir, server, load);
    if (dir && server)
        return run_server(dir, server, count, rounds);
    for (size_t i = 0; i < rounds; i++)
        if (!dir || !run_round(dir, count, i, rates))
            return 1;
    print_result(count, rounds, rates);
    return 0;
}
