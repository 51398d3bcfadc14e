/* SPDX-License-Identifier: Apache-2.0 */
/* store_server.c - the store on a PostgreSQL server beside a bare program
 *
 * In a round, and for each number of sessions in a transaction, both write into one fresh database:
 * they create sessions, then place them. Who is first changes from round to round. Their rows must
 * be the same in the end.
 */
#include "store_server.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "bench_database.h"
#include "store_run.h"

static const size_t lengths[] = { 1, 4, 16, 64 };
static const struct {
    const char *name;
    double rows; /* inserted and updated for a session, besides the lease of each transaction */
} works[STORE_WORKS] = {
    [STORE_CREATES] = { "created", 3 }, /* session, kernel, event */
    /* session, kernel, two amounts of the ledger, two of the history, event, attempt */
    [STORE_PLACES] = { "placed", 8 },
};

static struct {
    double rates[STORE_WORKS][AQ_COUNT(lengths)][ROUNDS_MAX];
    double ratios[STORE_WORKS][AQ_COUNT(lengths)][ROUNDS_MAX];    /* to the bare program */
    double in_commit[STORE_WORKS][AQ_COUNT(lengths)][ROUNDS_MAX]; /* sessions, by the beats */
} figures;

struct pair {
    struct store_run run;
    struct pipeline *bare;
    double rate, bare_rate, in_commit;
};

/* Both, one after the other. */
static bool measure_pair(struct pair *pair, enum store_work work, size_t together, bool bare_first,
                         struct aq_error *err)
{
    size_t count = pair->run.count;
    int64_t beat;

    if (bare_first)
        pair->bare_rate = pipeline_measure(pair->bare, work, count, together);
    beat = store_get_beat(pair->run.store);
    pair->rate = store_run_measure(&pair->run, work, together, err);
    pair->in_commit = (double)count / (double)(store_get_beat(pair->run.store) - beat);
    if (!bare_first)
        pair->bare_rate = pipeline_measure(pair->bare, work, count, together);
    return pair->rate > 0 && pair->bare_rate > 0;
}

static bool run_pairs(struct pair *pair, size_t length, size_t round, struct aq_error *err)
{
    for (enum store_work work = 0; work < STORE_WORKS; work++) {
        if (!measure_pair(pair, work, lengths[length], round % 2 == 0, err))
            return false;
        figures.rates[work][length][round] = pair->rate;
        figures.ratios[work][length][round] = pair->rate / pair->bare_rate;
        figures.in_commit[work][length][round] = pair->in_commit;
    }
    return pipeline_wrote_same(pair->bare);
}

/* One length of transactions in a fresh database. */
static bool run_length(const char *dir, const char *server, size_t count, size_t length,
                       size_t round)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/store.db.key", dir);
    struct bench_database db = { .uri = NULL };
    struct pair pair = { .bare = NULL };
    char user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    struct aq_error err = { 0 };
    bool ok = mkdir(dir, 0700) == 0 && bench_database_make(&db, server)
              && store_run_open(&pair.run, &(struct store_conf){ .path = db.uri, .key_path = key },
                                count, &err)
                     == 0;

    if (ok)
        pair.bare = pipeline_open(
            db.uri,
            &(struct pipeline_owner){ uuid_format(&pair.run.user_id, user),
                                      uuid_format(&pair.run.project_id, project) },
            count);
    ok = pair.bare && run_pairs(&pair, length, round, &err);
    if (err.code)
        (void)fprintf(stderr, "bench/store: %s\n", err.text);
    pipeline_close(pair.bare);
    store_run_close(&pair.run);
    (void)fs_remove_tree(AT_FDCWD, dir, NULL);
    bench_database_drop(&db);
    return ok;
}

int store_server_run(const char *dir, const char *server, size_t count, size_t rounds)
{
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < AQ_COUNT(lengths); i++)
            if (!run_length(dir, server, count, i, round))
                return 1;
    printf("{\"bench\":\"store\",\"engine\":\"postgresql\",\"sessions\":%zu,\"rounds\":%zu", count,
           rounds);
    for (size_t work = 0; work < STORE_WORKS; work++)
        for (size_t i = 0; i < AQ_COUNT(lengths); i++) {
            double rate = median(figures.rates[work][i], rounds);

            printf(",\"%s_per_s_%zu\":%.0f", works[work].name, lengths[i], rate);
            printf(",\"%s_rows_per_s_%zu\":%.0f", works[work].name, lengths[i],
                   rate * works[work].rows);
            printf(",\"%s_of_bare_%zu\":%.2f", works[work].name, lengths[i],
                   median(figures.ratios[work][i], rounds));
            printf(",\"%s_in_commit_%zu\":%.1f", works[work].name, lengths[i],
                   median(figures.in_commit[work][i], rounds));
        }
    printf("}\n");
    return 0;
}
