/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read: one piece at a time, each with a connection of its own. */
#include "store/store_internal.h"

#include <errno.h>
#include <time.h>

#include "store/writer.h"

#define CACHE_BYTES ((size_t)256 << 10)

static const char sql_rollback[] = "ROLLBACK";

/* A server that is asked for nothing is asked whether it is there, by one reader. */
#define PROBE_SEC 2

/* Is it time to? The lock is held. */
static bool reader_takes_probe(struct store *st)
{
    struct timespec now;
    bool is_due;

    if (!st->engine->is_server)
        return false;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    is_due = st->probe_sec && now.tv_sec >= st->probe_sec;

    if (!st->probe_sec || is_due)
        st->probe_sec = now.tv_sec + PROBE_SEC;
    return is_due;
}

/* The lock is held. */
static void reader_sleep(struct store *st)
{
    const struct timespec until = { .tv_sec = st->probe_sec };

    if (st->engine->is_server)
        (void)pthread_cond_timedwait(&st->read_queued, &st->lock, &until);
    else
        (void)pthread_cond_wait(&st->read_queued, &st->lock);
}

/* False when the store closes; true without a piece if the server is to be asked. */
static bool reader_take(struct store *st, struct piece **ret)
{
    struct list *first = NULL;
    bool is_probe = false;

    (void)pthread_mutex_lock(&st->lock);
    while (list_is_empty(&st->reads) && !st->stopping && !(is_probe = reader_takes_probe(st)))
        reader_sleep(st);
    if (!list_is_empty(&st->reads)) {
        first = st->reads.next;
        list_remove(first);
    }
    (void)pthread_mutex_unlock(&st->lock);
    *ret = first ? LIST_ENTRY(first, struct piece, link) : NULL;
    return first || is_probe;
}

/* A server may have closed the connection since the last read. */
static int reader_begin(struct store *st, struct sql *db, struct aq_error *err)
{
    const char *begin = st->engine->begin_read;
    int r = sql_run_constant(db, begin, err);

    if (r == 0)
        r = sql_settle(db, err);
    if (r == 0 || !st->engine->is_server || !st->engine->is_lost(db))
        return r;
    r = st->engine->connect_again(db, err);
    if (r == 0)
        r = sql_run_constant(db, begin, err);
    return r < 0 ? r : sql_settle(db, err);
}

static int reader_open(struct store *st, struct sql **db, struct aq_error *err)
{
    char session[LEASE_SESSION_MAX];
    const struct sql_conf conf = { .where = st->where,
                                   .session = lease_session_name(st->lease.incarnation,
                                                                 LEASE_READER, session),
                                   .read_only = true,
                                   .is_frozen = st->is_frozen,
                                   .cache_bytes = CACHE_BYTES };
    int r = *db ? 0 : sql_open(st->engine, &conf, db, err);

    if (r == 0)
        r = reader_begin(st, *db, err);
    if (r == 0)
        lease_note_there(&st->lease);
    else if (r == -EHOSTDOWN)
        lease_note_away(&st->lease, err);
    return r;
}

static void reader_end(struct sql *db)
{
    if (sql_run_constant(db, sql_rollback, NULL) == 0)
        (void)sql_settle(db, NULL);
}

static int reader_run(struct store *st, struct sql **db, struct piece *p)
{
    struct store_tx tx = { .seal = st->seal };
    int r = reader_open(st, db, &p->err), settled;

    if (r < 0)
        return r;
    tx.db = *db;
    r = p->fn(&tx, p->data, &p->err);
    if (r >= 0 && (settled = sql_settle(*db, &p->err)) < 0)
        r = settled;
    reader_end(*db);
    return r;
}

static void reader_probe(struct store *st, struct sql **db)
{
    struct aq_error err = { 0 };

    if (reader_open(st, db, &err) == 0)
        reader_end(*db);
}

int reader_call(struct store *st, store_tx_fn fn, void *data, struct aq_error *err)
{
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    struct piece p = { .fn = fn, .data = data };
    int r = reader_run(st, &db, &p);

    if (r < 0 && err)
        *err = p.err;
    return r;
}

void *reader_loop(void *data)
{
    AQ_CLEANUP(sql_closep) struct sql *db = NULL; /* opened when it is needed */
    struct store *st = data;
    struct list finished;
    struct piece *p;

    while (reader_take(st, &p)) {
        if (!p) {
            reader_probe(st, &db);
            continue;
        }
        p->result = reader_run(st, &db, p);
        list_init(&finished);
        list_add(&finished, &p->link);
        store_finish_pieces(st, &finished, 1);
    }
    return NULL;
}
