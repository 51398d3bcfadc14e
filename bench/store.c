/* SPDX-License-Identifier: Apache-2.0 */
/* bench/store - durable creations of sessions per second through store_commit()
 *
 * Each batch holds one session of one kernel. In each round, each with a fresh
 * database: single-row transactions of SQLite alone (WAL, synchronous=FULL) as
 * the measure of the disk, then 1, 4 and 64 outstanding batches. The last line
 * is one JSON object with medians over the rounds.
 *
 *     bench/store [--dir FOLDER] [--count SESSIONS] [--rounds N]
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
#include "store/fixture.h"
#include "store/store.h"

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
    struct event *e = batch ? event_batch_add(batch, EVENT_SESSION_CREATED, 1) : NULL;
    struct session *s;

    if (!e)
        return NULL;
    s = &e->session;
    *s = (struct session){
        .id = uuid_random(),
        .type = SESSION_BATCH,
        .priority = 10,
        .user_id = run->user_id,
        .project_id = run->project_id,
        .access_key = "AKIAIOSFODNN7EXAMPLE",
        .domain = strdup("default"),
        .resource_group = strdup("default"),
        .spec = strdup("{\"image\":\"\",\"command\":\"true\",\"environ\":{},\"cluster_size\":1}"),
        .created_usec = clock_realtime_usec(),
        .kernels = calloc(1, sizeof(*s->kernels)),
        .kernel_count = 1
    };
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
    if (!batch || store_commit(run->store, batch, on_committed, run) < 0)
        abort();
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

/* Sessions per second, or a negative errno. */
static double measure(const char *dir, size_t count, size_t outstanding, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/store.db", dir);
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    struct run run = { .count = count };
    int64_t began;
    int r = store_open(&(struct store_conf){ .path = path }, &store, err);

    if (r == 0)
        r = store_init_dev(store, err);
    if (r == 0)
        r = store_load(store, find_accounts, &run, err);
    if (r < 0)
        return r;
    run.store = store;
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

int main(int argc, char **argv)
{
    AQ_CLEANUP(aq_freep) char *dir = NULL;
    static double rates[COLUMNS][ROUNDS_MAX];
    const char *parent = ".";
    size_t count = 5000, rounds = 3;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0)
            parent = argv[i + 1];
        else if (strcmp(argv[i], "--count") == 0)
            count = (size_t)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = (size_t)strtoul(argv[i + 1], NULL, 10);
    }
    rounds = AQ_MIN(AQ_MAX(rounds, (size_t)1), (size_t)ROUNDS_MAX);
    dir = aq_format("%s/bench-store-%ld", parent, (long)getpid());
    for (size_t i = 0; i < rounds; i++)
        if (!dir || !run_round(dir, count, i, rates))
            return 1;
    print_result(count, rounds, rates);
    return 0;
}
