/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the threads and their queues */
#include "store/store_internal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/writer.h"

#define THREAD_STACK_BYTES ((size_t)512 << 10)
/* What comes while rows are written joins their transaction. Clients whose
 * requests were just committed are likely to be back at once: the next commit
 * waits for as many beside those that came during it, for half of what it took
 * and never longer than this.
 */
#define COMPANY_WAIT_MAX_NSEC 1000000
#define NSEC_PER_SEC INT64_C(1000000000)
/* How often a store beats by itself. */
#define BEAT_PAUSE_NSEC (NSEC_PER_SEC / 4)
/* With so much in the log a reader's thread brings them to the file, so
 * that no commit waits for it. Then the writer brings what was committed
 * meanwhile, which is little: when nothing is left, the log is restarted. With
 * so much that readers must have been in the way, the writer does it all.
 */
#define LOG_BYTES ((size_t)32 << 20)
#define LOG_BYTES_MAX ((size_t)128 << 20)
enum { LOG_GROWS, LOG_IS_TIDIED, LOG_WAS_TIDIED };

/* ---- threads ---- */

void store_finish_pieces(struct store *st, struct list *pieces, size_t count)
{
    bool was_empty, has_news;

    (void)pthread_mutex_lock(&st->lock);
    was_empty = list_is_empty(&st->finished);
    LIST_FOREACH(link, pieces) {
        struct piece *p = LIST_ENTRY(link, struct piece, link);

        list_remove(link);
        if (!p->is_beat) {
            list_add(&st->finished, link);
            continue;
        }
        st->is_beat_queued = false;
        free(p);
    }
    has_news = (was_empty && !list_is_empty(&st->finished)) || (st->is_lost && !st->is_lost_told);
    assert(st->outstanding >= count);
    st->outstanding -= count;
    (void)pthread_cond_broadcast(&st->finished_some);
    (void)pthread_mutex_unlock(&st->lock);
    if (has_news && st->wake)
        st->wake(st->wake_data);
}

static int64_t store_monotonic_nsec(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* Sleep until 'count' pieces wait, the store closes or it is 'until_nsec'
 * (0 = whenever). The lock is held.
 */
static void store_await_writes(struct store *st, size_t count, int64_t until_nsec)
{
    const struct timespec until = { .tv_sec = (time_t)(until_nsec / NSEC_PER_SEC),
                                    .tv_nsec = (long)(until_nsec % NSEC_PER_SEC) };
    int r = 0;

    st->write_wanted = count;
    while (st->write_count < count && !st->stopping && r == 0)
        r = until_nsec ? pthread_cond_timedwait(&st->write_queued, &st->lock, &until)
                       : pthread_cond_wait(&st->write_queued, &st->lock);
    st->write_wanted = SIZE_MAX;
}

/* Move the first pieces that wait to the list: as many batches as come before
 * a piece that is none, or all of them. The lock is held.
 */
static void store_move_writes(struct store *st, bool only_batches, struct list *pieces)
{
    LIST_FOREACH(link, &st->writes) {
        if (only_batches && !LIST_ENTRY(link, struct piece, link)->batch)
            break;
        list_remove(link);
        list_add(pieces, link);
        assert(st->write_count > 0);
        st->write_count--;
        st->taken++;
    }
}

/* A batch of nothing. The lock is held. */
static void store_queue_beat(struct store *st)
{
    static struct event_batch nothing;
    struct piece *p = aq_alloc(sizeof(*p));

    *p = (struct piece){ .batch = &nothing, .is_beat = true };
    list_add(&st->writes, &p->link);
    st->is_beat_queued = true;
    st->outstanding++;
    st->write_count++;
}

/* Wait for writes and take what there is. False when the store closes. */
static bool store_take_writes(struct store *st, struct list *ret)
{
    list_init(ret);
    (void)pthread_mutex_lock(&st->lock);
    st->taken = 0;
    store_await_writes(st, 1, st->beats_itself ? store_monotonic_nsec() + BEAT_PAUSE_NSEC : 0);
    if (list_is_empty(&st->writes) && st->beats_itself && !st->stopping)
        store_queue_beat(st);
    if (!list_is_empty(&st->writes))
        store_move_writes(st, LIST_ENTRY(st->writes.next, struct piece, link)->batch, ret);
    (void)pthread_mutex_unlock(&st->lock);
    return st->taken > 0;
}

/* writer_more_fn */
static bool store_take_more_writes(void *data, struct list *pieces)
{
    struct store *st = data;
    size_t before = st->taken;

    (void)pthread_mutex_lock(&st->lock);
    if (st->write_count == 0 && st->taken < st->expected)
        store_await_writes(st, 1, store_monotonic_nsec() + st->patience_nsec);
    store_move_writes(st, true, pieces);
    (void)pthread_mutex_unlock(&st->lock);
    if (st->taken == before)
        st->commit_nsec = store_monotonic_nsec();
    return st->taken > before;
}

/* store_tx_fn, in a reader's thread */
static int store_checkpoint_beside(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return tx->db->ops->checkpoint(tx->db, err);
}

static void store_set_log_state(struct store *st, int state)
{
    (void)pthread_mutex_lock(&st->lock);
    st->log_state = state;
    (void)pthread_mutex_unlock(&st->lock);
}

/* store_done_fn */
static void store_on_checkpoint(void *data, int r, const struct aq_error *err)
{
    if (r < 0) /* the writer tries again */
        log_warning("database: %s", err->text);
    store_set_log_state(data, LOG_WAS_TIDIED);
}

/* After a commit: have the log tidied; true if the writer is to do the rest. */
static bool store_needs_checkpoint(struct store *st)
{
    size_t bytes = st->tx.db->ops->log_bytes(st->tx.db);
    bool is_first, is_rest;

    if (bytes < LOG_BYTES)
        return false;
    (void)pthread_mutex_lock(&st->lock);
    is_first = st->log_state == LOG_GROWS;
    is_rest = st->log_state == LOG_WAS_TIDIED;
    st->log_state = is_first ? LOG_IS_TIDIED : is_rest ? LOG_GROWS : st->log_state;
    (void)pthread_mutex_unlock(&st->lock);
    if (is_first)
        store_read(st, store_checkpoint_beside, store_on_checkpoint, st);
    return is_rest || bytes >= LOG_BYTES_MAX;
}

static void store_checkpoint(struct store *st)
{
    (void)pthread_mutex_lock(&st->writing);
    (void)st->tx.db->ops->checkpoint(st->tx.db, NULL); /* if not now, after the next commit */
    (void)pthread_mutex_unlock(&st->writing);
}

/* Those whose pieces are about to be finished, and those who came meanwhile. */
static void store_expect_company(struct store *st)
{
    (void)pthread_mutex_lock(&st->lock);
    st->expected = st->taken + st->write_count;
    (void)pthread_mutex_unlock(&st->lock);
}

/* store_dispatch() tells it. */
static void store_note_loss(struct store *st, const struct list *pieces)
{
    (void)pthread_mutex_lock(&st->lock);
    if (!st->is_lost) {
        st->is_lost = true;
        st->lost_err = LIST_ENTRY(pieces->prev, struct piece, link)->err;
    }
    (void)pthread_mutex_unlock(&st->lock);
}

static void *store_writer_loop(void *data)
{
    struct store *st = data;
    struct list pieces;
    bool is_untidy;

    while (store_take_writes(st, &pieces)) {
        (void)pthread_mutex_lock(&st->writing);
        st->commit_nsec = store_monotonic_nsec();
        writer_run(&st->tx, &pieces, store_take_more_writes, st);
        is_untidy = store_needs_checkpoint(st);
        (void)pthread_mutex_unlock(&st->writing);
        if (st->lease.is_lost)
            store_note_loss(st, &pieces);
        store_expect_company(st);
        st->patience_nsec = AQ_MIN((store_monotonic_nsec() - st->commit_nsec) / 2,
                                   COMPANY_WAIT_MAX_NSEC);
        store_finish_pieces(st, &pieces, st->taken);
        AQ_FAULT("store.batch.finished");
        if (is_untidy)
            store_checkpoint(st);
    }
    return NULL;
}

static int store_start_threads(struct store *st, struct aq_error *err)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int r;

    r = pthread_attr_init(&attr);
    if (r != 0)
        return aq_fail(err, r, "store threads");
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    (void)sigfillset(&all); /* signals are for the owner's threads */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    for (size_t i = 0; r == 0 && i < AQ_COUNT(st->threads); i++) {
        r = pthread_create(&st->threads[i], &attr, i == 0 ? store_writer_loop : reader_loop, st);
        if (r == 0)
            st->thread_count++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return r == 0 ? 0 : aq_fail(err, r, "store threads: %s", strerror(r));
}

/* ---- queues ---- */

static void store_queue_piece(struct store *st, const struct piece *piece, bool is_read)
{
    struct piece *p = aq_alloc(sizeof(*p));
    bool is_wanted;

    *p = *piece;
    (void)pthread_mutex_lock(&st->lock);
    list_add(is_read ? &st->reads : &st->writes, &p->link);
    st->outstanding++;
    st->write_count += !is_read;
    is_wanted = is_read || st->write_count >= st->write_wanted;
    (void)pthread_mutex_unlock(&st->lock);
    if (is_wanted) /* who wakes finds the lock free */
        (void)pthread_cond_signal(is_read ? &st->read_queued : &st->write_queued);
}

void store_commit(struct store *store, struct event_batch *batch, store_commit_fn done, void *data)
{
    store_queue_piece(store, &(struct piece){ .batch = batch, .committed = done, .data = data },
                      false);
}

void store_read(struct store *store, store_tx_fn fn, store_done_fn done, void *data)
{
    store_queue_piece(store, &(struct piece){ .fn = fn, .done = done, .data = data }, true);
}

void store_write(struct store *store, store_tx_fn fn, store_done_fn done, void *data)
{
    store_queue_piece(store, &(struct piece){ .fn = fn, .done = done, .data = data }, false);
}

void store_beat(struct store *store)
{
    bool is_wanted;

    if (!store->engine->is_server)
        return;
    (void)pthread_mutex_lock(&store->lock);
    store->beats_itself = false;
    is_wanted = !store->is_beat_queued && store->write_count == 0;
    if (is_wanted)
        store_queue_beat(store);
    (void)pthread_mutex_unlock(&store->lock);
    if (is_wanted)
        (void)pthread_cond_signal(&store->write_queued);
}

int store_call(struct store *store, store_tx_fn fn, void *data, struct aq_error *err)
{
    struct piece piece = { .fn = fn, .data = data };
    struct list pieces;

    list_init(&pieces);
    list_add(&pieces, &piece.link);
    (void)pthread_mutex_lock(&store->writing);
    writer_run(&store->tx, &pieces, NULL, NULL);
    (void)pthread_mutex_unlock(&store->writing);
    if (piece.result < 0 && err)
        *err = piece.err;
    return piece.result;
}

void store_dispatch(struct store *store)
{
    struct list finished;
    bool is_lost;

    list_init(&finished);
    (void)pthread_mutex_lock(&store->lock);
    is_lost = store->is_lost && !store->is_lost_told;
    store->is_lost_told |= is_lost;
    LIST_FOREACH(link, &store->finished) {
        list_remove(link);
        list_add(&finished, link);
    }
    (void)pthread_mutex_unlock(&store->lock);
    while (!list_is_empty(&finished)) {
        struct piece *p = LIST_ENTRY(finished.next, struct piece, link);

        list_remove(&p->link);
        AQ_FAULT("store.dispatch.callback");
        if (p->batch)
            p->committed(p->data, p->result, &p->err, p->batch);
        else
            p->done(p->data, p->result, &p->err);
        free(p);
    }
    if (is_lost && store->lost)
        store->lost(store->wake_data, &store->lost_err);
}

void store_flush(struct store *store)
{
    bool is_idle;

    do {
        (void)pthread_mutex_lock(&store->lock);
        while (store->outstanding && list_is_empty(&store->finished))
            (void)pthread_cond_wait(&store->finished_some, &store->lock);
        is_idle = list_is_empty(&store->finished);
        (void)pthread_mutex_unlock(&store->lock);
        store_dispatch(store);
    } while (!is_idle);
}

/* ---- opening ---- */

static struct store *store_new(const struct store_conf *conf)
{
    struct store *st = aq_alloc(sizeof(*st));
    pthread_condattr_t monotonic;

    st->where = aq_strdup(conf->path);
    st->wake = conf->wake;
    st->lost = conf->lost;
    st->wake_data = conf->wake_data;
    st->lock_fd = st->file_lock_fd = -1;
    reserve_init(&st->reserve);
    st->write_wanted = SIZE_MAX;
    list_init(&st->writes);
    list_init(&st->reads);
    list_init(&st->finished);
    (void)pthread_mutex_init(&st->writing, NULL);
    (void)pthread_mutex_init(&st->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&st->write_queued, &monotonic);
    (void)pthread_cond_init(&st->read_queued, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)pthread_cond_init(&st->finished_some, NULL);
    return st;
}

int store_open(const struct store_conf *conf, struct store **ret, struct aq_error *err)
{
    AQ_CLEANUP(store_closep) struct store *st = store_new(conf);
    int r = store_open_database(st, conf, err);

    if (r == 0)
        r = writer_prepare(&st->tx, err);
    if (r == 0)
        r = store_start_threads(st, err);
    if (r == 0)
        *ret = AQ_TAKE(st);
    return r;
}

static void store_stop_threads(struct store *st)
{
    (void)pthread_mutex_lock(&st->lock);
    st->stopping = true;
    (void)pthread_cond_broadcast(&st->write_queued);
    (void)pthread_cond_broadcast(&st->read_queued);
    (void)pthread_mutex_unlock(&st->lock);
    for (size_t i = 0; i < st->thread_count; i++)
        (void)pthread_join(st->threads[i], NULL);
}

int64_t store_get_away_usec(const struct store *store)
{
    return lease_away_usec(&store->lease);
}

int64_t store_get_epoch(const struct store *store)
{
    return store->lease.epoch;
}

void store_set_successor(struct store *store, const char *name)
{
    free(store->successor);
    store->successor = aq_strdup(name);
}

int64_t store_get_beat(const struct store *store)
{
    return atomic_load(&store->lease.acked_beat);
}

int64_t store_get_renewed_usec(const struct store *store)
{
    return atomic_load(&store->lease.renewed_usec);
}

const char *store_get_risks(const struct store *store)
{
    return store->risks.len ? store->risks.data : "";
}

void store_close(struct store *store)
{
    if (!store)
        return;
    store_flush(store);
    store_stop_threads(store);
    store_open_release(store);
    sql_close(store->tx.db);
    strbuf_done(&store->risks);
    seal_free(store->seal);
    aq_closep(&store->file_lock_fd);
    reserve_done(&store->reserve);
    if (store->thread_count)
        store_open_mark_clean(store);
    aq_closep(&store->lock_fd);
    (void)pthread_mutex_destroy(&store->writing);
    (void)pthread_mutex_destroy(&store->lock);
    (void)pthread_cond_destroy(&store->write_queued);
    (void)pthread_cond_destroy(&store->read_queued);
    (void)pthread_cond_destroy(&store->finished_some);
    free(store->reserve_path);
    free(store->successor);
    free(store->where);
    free(store);
}

int store_find_lack(struct store *store)
{
    return reserve_find_lack(&store->reserve);
}

bool store_is_frozen(const struct store *store)
{
    return store->is_frozen;
}

int store_derive(const struct store *store, const char *purpose, char ret[65], struct aq_error *err)
{
    unsigned char bytes[SEAL_DERIVED];
    int r = seal_derive(store->seal, purpose, bytes, err);

    for (size_t i = 0; r == 0 && i < sizeof(bytes); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof(bytes));
    return r;
}
