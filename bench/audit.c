/* SPDX-License-Identifier: Apache-2.0 */
/* bench/audit - the manager's audit of many sessions that wait
 *
 * The manager's core, without HTTP, link and processes, on a fresh database in which 'count'
 * sessions wait, on a PostgreSQL server with --server (a URI with %s in
 * place of a database's name). Each round is
 * one audit. The last line is one JSON object: medians over the rounds of how long an audit took
 * and, during it, of the longest turn of the loop in processor time and, on a server, of the age
 * that the last acknowledged commit reached: after 5 s a standby takes the lead.
 *
 *     bench/audit [--dir FOLDER] [--count SESSIONS] [--rounds N] [--server URI]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "bench_database.h"
#include "manager/core/state/state.h"
#include "store/sql_module.h"

#define CLIENTS 64
#define ROUNDS_MAX 15

static struct {
    uv_loop_t loop;
    uv_prepare_t prepare; /* each turn of the loop */
    struct core *core;
    size_t count, created, answered;
    int64_t began_usec, turn_usec; /* the audit; the last turn, by the thread's processor time */
    int64_t longest_usec, oldest_usec; /* turn and commit */
    double seconds[ROUNDS_MAX], turn_msec[ROUNDS_MAX], oldest_msec[ROUNDS_MAX];
} bench;

static void die(const char *what, const struct aq_error *err)
{
    (void)fprintf(stderr, "bench/audit: %s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

/* The engine itself, in place of the module. */
int sql_load_postgres(const struct sql_ops **ret, struct aq_error *err)
{
    (void)err;
    *ret = aq_sql_module.ops;
    return 0;
}

/* ---- sessions ---- */

static void submit(void);

static void on_created(void *data, int r, const struct aq_error *err,
                       const struct core_created *created)
{
    (void)data;
    (void)created;
    if (r < 0)
        die("creating", err);
    if (++bench.answered == bench.count)
        uv_stop(&bench.loop);
    else if (bench.created < bench.count)
        submit();
}

static void submit(void)
{
    char name[32];
    const struct session_request req = { .name = name,
                                         .type = SESSION_BATCH,
                                         .spec.image = "sh",
                                         .spec.command = "true",
                                         .access_key = "AKIANABBDUSEREXAMPLE",
                                         .priority = -1 };
    const struct session_request *requests = &req;

    (void)snprintf(name, sizeof(name), "bench-%zu", bench.created++);
    core_create_sessions(bench.core, &requests, 1, NULL, NULL, on_created, NULL);
}

/* ---- audits ---- */

static int64_t cpu_usec(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * USEC_PER_SEC + used.tv_nsec / 1000;
}

static void on_turn(uv_prepare_t *prepare)
{
    int64_t used = cpu_usec();
    int64_t age = clock_monotonic_usec() - store_get_renewed_usec(bench.core->store);

    (void)prepare;
    bench.longest_usec = AQ_MAX(bench.longest_usec, used - bench.turn_usec);
    bench.turn_usec = used;
    bench.oldest_usec = AQ_MAX(bench.oldest_usec, age);
}

static void on_audited(void *data, int r, const struct aq_error *err, const char *findings)
{
    size_t round = *(size_t *)data;

    if (r != 0)
        die(findings, err);
    on_turn(&bench.prepare);
    bench.seconds[round] = (double)(clock_monotonic_usec() - bench.began_usec) / 1e6;
    bench.turn_msec[round] = (double)bench.longest_usec / 1e3;
    bench.oldest_msec[round] = (double)bench.oldest_usec / 1e3;
    uv_stop(&bench.loop);
}

static void audit(size_t round)
{
    bench.longest_usec = bench.oldest_usec = 0;
    bench.began_usec = clock_monotonic_usec();
    bench.turn_usec = cpu_usec();
    core_audit(bench.core, on_audited, &round);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
}

/* ---- together ---- */

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

static void run(const char *dir, const char *server, size_t rounds)
{
    struct bench_database db = { .uri = NULL };
    struct core_conf conf = { .loop = &bench.loop,
                              .state_dir = dir,
                              .dev = true,
                              .session_bytes_max = INT64_C(4) << 30,
                              .user_session_bytes_max = INT64_C(4) << 30 };
    struct aq_error err;

    if (server && !bench_database_make(&db, server))
        die("no database", NULL);
    conf.database = db.uri;
    (void)uv_loop_init(&bench.loop);
    if (core_new(&conf, &bench.core, &err) < 0 || core_start(bench.core, &err) < 0)
        die("core", &err);
    for (int i = 0; i < CLIENTS; i++)
        submit();
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    (void)uv_prepare_init(&bench.loop, &bench.prepare);
    (void)uv_prepare_start(&bench.prepare, on_turn);
    for (size_t i = 0; i < rounds; i++)
        audit(i);
    (void)printf("{\"bench\":\"audit\",\"engine\":\"%s\",\"sessions\":%zu,\"rounds\":%zu,"
                 "\"seconds\":%.2f,\"longest_turn_ms\":%.1f",
                 server ? "postgresql" : "sqlite", bench.count, rounds,
                 median(bench.seconds, rounds), median(bench.turn_msec, rounds));
    if (server) /* nobody looks at a file */
        (void)printf(",\"oldest_commit_ms\":%.0f", median(bench.oldest_msec, rounds));
    (void)printf("}\n");
    uv_close((uv_handle_t *)&bench.prepare, NULL);
    core_free(bench.core);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&bench.loop);
    bench_database_drop(&db);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/aliquot-bench-audit-XXXXXX";
    const char *chosen = NULL, *server = NULL;
    size_t rounds = 3;

    bench.count = 1000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0)
            bench.count = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--server") == 0)
            server = argv[i + 1];
        else if (strcmp(argv[i], "--dir") == 0)
            chosen = argv[i + 1];
    }
    rounds = AQ_MIN(AQ_MAX(rounds, (size_t)1), (size_t)ROUNDS_MAX);
    if (bench.count < CLIENTS)
        die("at least 64 sessions", NULL);
    log_init("bench", LOG_LEVEL_WARNING);
    if (!chosen && !mkdtemp(dir))
        die("mkdtemp", NULL);
    run(chosen ? chosen : dir, server, rounds);
    if (!chosen)
        (void)fs_remove_tree(AT_FDCWD, dir, NULL);
    return 0;
}
