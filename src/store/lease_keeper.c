/* SPDX-License-Identifier: Apache-2.0 */
/* lease_keeper.c - see lease_keeper.h */
#include "store/lease_keeper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "store/lease.h"

/* The pause equals that of a manager's loop between beats. A migration that changes the row's table
 * locks it; a beat gives up on that lock soon, as standbys cannot read the row then, either.
 */
#define KEEPER_PAUSE_NSEC 250000000
#define KEEPER_LOCK_MSEC 200

struct lease_keeper {
    struct sql *db;
    int64_t epoch;
    pthread_t thread;
    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t stop_wanted;
    bool stopping;
    int result;
    struct aq_error err;
};

static int lease_keeper_beat(struct lease_keeper *k, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(k->db,
                             "UPDATE manager_lease SET beat = beat + 1 WHERE epoch = ?"
                             " RETURNING beat",
                             &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, k->epoch);
    r = sql_step(q, err);
    if (r == 0)
        return aq_fail(err, EOWNERDEAD, "another manager has taken the database over");
    return r > 0 || r == -EBUSY ? 0 : r;
}

static void *lease_keeper_loop(void *data)
{
    struct lease_keeper *k = data;
    struct timespec until;

    (void)pthread_mutex_lock(&k->lock);
    do { /* at least once, so that lease_keeper_stop() knows whether the epoch is still ours */
        (void)pthread_mutex_unlock(&k->lock);
        k->result = lease_keeper_beat(k, &k->err);
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += KEEPER_PAUSE_NSEC;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_mutex_lock(&k->lock);
        if (!k->stopping)
            (void)pthread_cond_timedwait(&k->stop_wanted, &k->lock, &until);
    } while (!k->stopping && k->result == 0);
    (void)pthread_mutex_unlock(&k->lock);
    return NULL;
}

static void lease_keeper_free(struct lease_keeper *k)
{
    sql_close(k->db);
    (void)pthread_mutex_destroy(&k->lock);
    (void)pthread_cond_destroy(&k->stop_wanted);
    free(k);
}

int lease_keeper_start(const struct sql_ops *engine, const char *where, const char *incarnation,
                       int64_t epoch, struct lease_keeper **ret, struct aq_error *err)
{
    char session[LEASE_SESSION_MAX];
    const struct sql_conf conf = { .where = where,
                                   .session = lease_session_name(incarnation, LEASE_WRITER,
                                                                 session),
                                   .lock_msec = KEEPER_LOCK_MSEC };
    struct lease_keeper *k = aq_alloc(sizeof(*k));
    pthread_condattr_t monotonic;
    sigset_t all, before;
    int r;

    k->epoch = epoch;
    (void)pthread_mutex_init(&k->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&k->stop_wanted, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    r = sql_open(engine, &conf, &k->db, err);
    if (r == 0) {
        (void)sigfillset(&all); /* the owner's threads handle signals */
        (void)pthread_sigmask(SIG_BLOCK, &all, &before);
        r = pthread_create(&k->thread, NULL, lease_keeper_loop, k);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r > 0)
            r = aq_fail(err, r, "cannot start the thread that renews the lease");
    }
    if (r < 0)
        lease_keeper_free(k);
    else
        *ret = k;
    return r;
}

int lease_keeper_stop(struct lease_keeper *keeper, struct aq_error *err)
{
    int r;

    if (!keeper)
        return 0;
    (void)pthread_mutex_lock(&keeper->lock);
    keeper->stopping = true;
    (void)pthread_cond_signal(&keeper->stop_wanted);
    (void)pthread_mutex_unlock(&keeper->lock);
    (void)pthread_join(keeper->thread, NULL);
    r = keeper->result;
    if (r < 0 && err)
        *err = keeper->err;
    lease_keeper_free(keeper);
    return r;
}
