/* SPDX-License-Identifier: Apache-2.0 */
/* leadership.c - see leadership.h */
#include "store/leadership.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/lease.h"
#include "store/store_internal.h"

#define LOCK_MSEC 1000
#define ANSWER_MSEC 4000
#define CLOCK_APART_USEC (10 * USEC_PER_SEC)

struct leadership {
    struct sql *db;
    bool is_new;                     /* the connection was made since the last read */
    struct leader_claim predecessor; /* holder of the row at the last leadership_take() */
    int64_t epoch, beat;             /* the highest epoch seen, and its highest beat */
    int64_t ahead_usec;              /* of our clock to the leader's */
    bool is_apart;                   /* the clocks differ, which was logged */
    bool is_warned;                  /* that the row is older than those */
};

int leadership_open(const char *uri, struct leadership **ret, struct aq_error *err)
{
    const struct sql_conf conf = { .where = uri,
                                   .session = "aliquot standby",
                                   .lock_msec = LOCK_MSEC,
                                   .answer_msec = ANSWER_MSEC };
    AQ_CLEANUP(leadership_closep) struct leadership *l = aq_alloc(sizeof(*l));
    const struct sql_ops *engine;
    int r = sql_find_engine(uri, &engine, err);

    if (r == 0 && !engine->is_server)
        r = aq_fail(err, EINVAL, "'%s' is a file, which only one manager can use", uri);
    if (r == 0)
        r = sql_open(engine, &conf, &l->db, err);
    if (r == 0)
        r = engine->check_pooler(l->db, err);
    if (r < 0)
        return r;
    l->is_new = true;
    *ret = AQ_TAKE(l);
    return 0;
}

void leadership_close(struct leadership *leadership)
{
    if (!leadership)
        return;
    sql_close(leadership->db);
    free(leadership);
}

static int leadership_connect(struct leadership *l, struct aq_error *err)
{
    int r;

    if (!l->db->ops->is_lost(l->db))
        return 0;
    r = l->db->ops->connect_again(l->db, err);
    l->is_new |= r == 0;
    return r;
}

/* A server that took over from another one without its last commits has an older row. */
static void leadership_compare(struct leadership *l, const struct leader_view *view)
{
    bool is_older = view->epoch < l->epoch || (view->epoch == l->epoch && view->beat < l->beat);

    if (is_older && !l->is_warned && view->epoch == l->epoch)
        log_warning(
            "the database lacks the last %lld commits; its server lagged behind the former one, "
            "or a backup was restored",
            (long long)(l->beat - view->beat));
    else if (is_older && !l->is_warned)
        log_warning(
            "the database went back from epoch %lld to epoch %lld; its server lagged behind the "
            "former one, or a backup was restored",
            (long long)l->epoch, (long long)view->epoch);
    l->is_warned = is_older;
    if (!is_older) {
        l->epoch = view->epoch;
        l->beat = view->beat;
    }
}

/* How long ago the first commit that is seen was made is not known; later ones were not there at the
 * read before.
 */
static void leadership_compare_clocks(struct leadership *l, const struct leader_view *view)
{
    bool is_apart;

    if (view->epoch != l->epoch || view->beat == l->beat || !view->clock_usec)
        return;
    l->ahead_usec = clock_realtime_usec() - view->clock_usec;
    is_apart = llabs(l->ahead_usec) > CLOCK_APART_USEC;
    if (is_apart && !l->is_apart)
        log_warning("the clock of this machine is %lld s %s that of the leader '%s'; set both by "
                    "NTP",
                    llabs(l->ahead_usec) / USEC_PER_SEC, l->ahead_usec > 0 ? "ahead of" : "behind",
                    view->holder.name);
    l->is_apart = is_apart;
}

int leadership_read(struct leadership *leadership, struct leader_view *ret, bool *ret_is_new,
                    struct aq_error *err)
{
    struct lease_row row;
    int r = leadership_connect(leadership, err);

    if (r == 0)
        r = lease_read(leadership->db, &row, err);
    if (r < 0)
        return r;
    *ret = row.view;
    if (ret_is_new)
        *ret_is_new = leadership->is_new;
    leadership->is_new = false;
    leadership_compare_clocks(leadership, ret);
    leadership_compare(leadership, ret);
    ret->ahead_usec = leadership->ahead_usec;
    return 0;
}

/* Complete an earlier take, which changed the row and whose answer was lost. */
static int leadership_finish(struct leadership *l, const struct leader_view *seen,
                             int64_t *ret_epoch, struct aq_error *err)
{
    struct lease_row row;
    int r = lease_read(l->db, &row, err);

    if (r == 0 && row.view.epoch != seen->epoch)
        r = aq_fail(err, ESTALE, "another manager has taken the lead");
    if (r == 0)
        r = lease_end_sessions(l->db, l->predecessor.incarnation, err);
    if (r == 0)
        *ret_epoch = seen->epoch;
    return r;
}

int leadership_check_key(struct leadership *leadership, const char *key_path, struct aq_error *err)
{
    AQ_CLEANUP(seal_freep) struct seal *seal = NULL;
    struct store_tx tx = { .db = leadership->db };
    int r = seal_open(key_path, false, &seal, err);

    tx.seal = seal;
    if (r == 0)
        r = store_open_compare_key(&tx, err);
    return r == -ENOENT ? 0 : r; /* the first manager that leads records its key */
}

int leadership_take(struct leadership *leadership, const struct leader_view *seen,
                    const struct leader_claim *self, int64_t *ret_epoch, struct aq_error *err)
{
    int r = leadership_connect(leadership, err);

    if (r < 0)
        return r;
    if (seen->is_held && strcmp(seen->holder.incarnation, self->incarnation) == 0)
        return leadership_finish(leadership, seen, ret_epoch, err);
    leadership->predecessor = seen->holder;
    /* A server that lacks former takeovers would use their epochs again, which agents have already
     * recorded.
     */
    return lease_take(leadership->db, seen, self, NULL, leadership->epoch + 1, ret_epoch, err);
}
