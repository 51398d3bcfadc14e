/* SPDX-License-Identifier: Apache-2.0 */
/* bench/store - durable creations of sessions per second through store_commit()
 *
 * Each batch holds one session of one kernel. In each round, each with a fresh
 * database: single-row transactions of SQLite alone (WAL, synchronous=FULL) as
 * the measure of the disk, then 1, 4 and 64 outstanding batches. With --server,
 * a URI with %s for a database's name, sessions are created and placed on that PostgreSQL
 * server, beside a bare program: see store_server.c. The last line is
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
#include "store/sql_module.h"
#include "store_run.h"
#include "store_server.h"

/* The engine itself, in place of the module. */
int sql_load_postgres(const struct sql_ops **ret, struct aq_error *err)
{
    (void)err;
    *ret = aq_sql_module.ops;
    return 0;
}

/* Sessions per second, or a negative errno. */
static double measure(const char *dir, size_t count, size_t outstanding, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/store.db", dir);
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/store.db.key", dir);
    struct store_run run;
    double rate = store_run_open(&run, &(struct store_conf){ .path = path, .key_path = key }, count,
                                 err);

    if (rate == 0)
        rate = store_run_measure(&run, STORE_CREATES, outstanding, err);
    store_run_close(&run);
    return rate;
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

static const size_t outstanding[] = { 1, 4, 64 };
#define COLUMNS (AQ_COUNT(outstanding) + 1) /* the first is SQLite alone */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *values, size_t count)
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
                                 : measure(dir, count, outstanding[i - 1], &err);
        (void)fs_remove_tree(AT_FDCWD, dir, NULL);
        if (rates[i][round] < 0) {
            (void)fprintf(stderr, "bench/store: %s\n", i == 0 ? "SQLite" : err.text);
            return false;
        }
    }
    return true;
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
    struct store_run run;
    size_t found = 0;
    int64_t began;
    bool ok = store_run_open(&run, conf, count, err) == 0
              && store_run_measure(&run, STORE_CREATES, AQ_MIN(count, (size_t)1000), err) > 0;

    store_run_close(&run);
    if (!ok || store_open(conf, &store, err) < 0)
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
        return store_server_run(dir, server, count, rounds);
    for (size_t i = 0; i < rounds; i++)
        if (!dir || !run_round(dir, count, i, rates))
            return 1;
    print_result(count, rounds, rates);
    return 0;
}
