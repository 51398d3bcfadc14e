/* SPDX-License-Identifier: Apache-2.0 */
/* A database into another one, of whatever engine. */
#include "store/move.h"

#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "store/lease.h"
#include "store/lease_keeper.h"
#include "store/migrate.h"
#include "store/store_internal.h"
#include "store/setting.h"
#include "store/transfer.h"

struct mover {
    struct store_move *move;
    struct store *from; /* held: no manager opens it meanwhile */
    struct sql *to;
    struct strbuf differences;
};

/* ---- the target ---- */

/* Until all rows have arrived the target's lease has an epoch that store_open() refuses. */
static const char move_begin[] = "UPDATE manager_lease SET epoch = -1",
                  move_end[] = "UPDATE manager_lease SET epoch = ?, beat = ?";

/* Commits are counted on, as agents have the numbers of those that their orders followed. 'epoch' is
 * above what agents have recorded, or 0 of a file.
 */
static int move_count_on(struct sql *from, struct sql *to, int64_t epoch, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *beat = NULL, *q = NULL;
    int r = sql_prepare_once(from, "SELECT beat FROM manager_lease", &beat, err);

    if (r == 0)
        r = sql_step(beat, err);
    if (r >= 0)
        r = sql_prepare_once(to, move_end, &q, err);
    if (r < 0)
        return r;
    sql_put_int(q, epoch);
    sql_put_int(q, sql_get_int(beat));
    r = sql_step(q, err);
    return AQ_MIN(r, 0);
}

static int move_has_rows(struct sql *db, const char *query, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, query, &q, err);

    return r < 0 ? r : sql_step(q, err);
}

/* Empty, or half filled by a try before. */
static int move_check_target(struct mover *m, struct aq_error *err)
{
    int r = m->to->ops->is_empty(m->to, err);

    if (r == 0)
        r = move_has_rows(m->to, "SELECT 1 FROM manager_lease WHERE epoch < 0", err);
    if (r == 0)
        r = move_has_rows(m->to, "SELECT 1 FROM settings LIMIT 1", err) > 0
                ? aq_fail(err, EEXIST,
                          "'%s' has the rows of a cluster already: name an empty database",
                          m->move->to)
                : 0;
    return AQ_MIN(r, 0);
}

static int move_open_target(struct mover *m, struct aq_error *err)
{
    const struct sql_conf conf = { .where = m->move->to, .cache_bytes = (size_t)4 << 20 };
    const struct sql_ops *engine;
    int r = sql_find_engine(m->move->to, &engine, err);

    if (r == 0)
        r = sql_open(engine, &conf, &m->to, err);
    if (r == 0 && engine->is_server)
        r = engine->check_pooler(m->to, err);
    if (r == 0 && engine->is_server)
        r = lease_lock(m->to, err);
    return r < 0 ? r : move_check_target(m, err);
}

/* ---- the rows ---- */

static int move_copy(struct mover *m, struct aq_error *err)
{
    int r = migrate(m->to, store_migrations, store_migration_count, err);

    if (r == 0)
        r = sql_run_script(m->to, move_begin, err);
    AQ_FAULT("store.move.begun");
    if (r == 0)
        r = transfer_copy(m->from->tx.db, m->to, m->move->report, m->move->data, NULL, err);
    AQ_FAULT("store.move.copied");
    return r;
}

static int move_compare(struct mover *m, struct aq_error *err)
{
    struct store_tx tx = { .db = m->to };
    int found = transfer_compare(m->from->tx.db, m->to, NULL, &m->differences, err);

    if (found == 0)
        found = sql_run_script(m->to, m->to->ops->begin_read, err);
    if (found == 0)
        found = store_audit_ledger(&tx, &m->differences, err);
    if (found == 0)
        found = sql_run_script(m->to, "COMMIT", err);
    if (found <= 0)
        return found;
    return aq_fail(err, EUCLEAN, "the copy is not what it should be: %.200s", m->differences.data);
}

/* store_tx_fn of the source, which stays locked and unchanged */
static int move_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct mover *m = data;
    int r = transfer_count(tx->db, &m->move->rows, err);

    if (r < 0 || m->move->dry_run)
        return r;
    if ((r = move_copy(m, err)) < 0 || (r = move_compare(m, err)) < 0)
        return r;
    return move_count_on(
        tx->db, m->to,
        m->to->ops->is_server ? AQ_MAX(m->from->lease.epoch, lease_restored_epoch()) : 0, err);
}

int store_move(struct store_move *move, struct aq_error *err)
{
    const struct store_conf conf = { .path = move->from, .key_path = move->key_path };
    struct mover m = { .move = move };
    struct lease_keeper *keeper = NULL;
    int kept, r = strcmp(move->from, move->to) == 0
                      ? aq_fail(err, EINVAL, "'%s' is that database already", move->to)
                      : store_open(&conf, &m.from, err);

    if (r == 0) /* a newer one may have tables that are not known here */
        r = migrate_check(m.from->tx.db, store_migrations, store_migration_count, err);
    if (r == 0)
        r = move_open_target(&m, err);
    if (r == 0 && m.from->engine->is_server) /* the writer copies, and beats only at the end */
        r = lease_keeper_start(m.from->engine, move->from, m.from->lease.incarnation,
                               m.from->lease.epoch, &keeper, err);
    if (r == 0)
        r = store_call(m.from, move_run, &m, err);
    kept = lease_keeper_stop(keeper, r == 0 ? err : NULL);
    sql_close(m.to);
    store_close(m.from);
    strbuf_done(&m.differences);
    return r < 0 ? r : kept;
}

/* ---- a copy while others write ---- */

/* From a server: into a file that is made for it. */
static int move_copy_server(struct sql *from, const char *file, struct pace *pace,
                            struct aq_error *err)
{
    const struct sql_conf conf = { .where = file, .cache_bytes = (size_t)4 << 20 };
    AQ_CLEANUP(sql_closep) struct sql *to = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf differences = STRBUF_INIT;
    int r = migrate_check(from, store_migrations, store_migration_count, err);

    if (r == 0)
        r = sql_open(&sql_sqlite, &conf, &to, err);
    if (r == 0)
        r = migrate(to, store_migrations, store_migration_count, err);
    if (r == 0)
        r = sql_run_script(from, from->ops->begin_read, err);
    if (r == 0)
        r = transfer_copy(from, to, NULL, NULL, pace, err);
    if (r == 0)
        r = transfer_compare(from, to, pace, &differences, err);
    if (r > 0)
        r = aq_fail(err, EUCLEAN, "the copy is not what it should be: %.200s", differences.data);
    if (r == 0)
        r = move_count_on(from, to, 0, err);
    return r < 0 ? r : to->ops->checkpoint(to, err);
}

int store_copy(const char *from, const char *file, struct pace *pace, struct aq_error *err)
{
    const struct sql_conf conf = { .where = from,
                                   .read_only = true,
                                   .cache_bytes = (size_t)1 << 20 };
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    const struct sql_ops *engine;
    int r = sql_find_engine(from, &engine, err);

    if (r == 0)
        r = sql_open(engine, &conf, &db, err);
    if (r < 0)
        return r;
    return engine->is_server ? move_copy_server(db, file, pace, err)
                             : engine->backup(db, file, pace, err);
}

struct verifier {
    struct strbuf findings;
    int64_t rows;
};

/* store_tx_fn */
static int move_audit(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct verifier *v = data;
    int found = store_audit_file(tx, &v->findings, err);

    if (found == 0)
        found = store_audit_ledger(tx, &v->findings, err);
    return found == 0 ? transfer_count(tx->db, &v->rows, err) : found;
}

int store_verify(const char *file, const char *key_path, int64_t *ret_rows, struct aq_error *err)
{
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    struct verifier v = { .findings = STRBUF_INIT };
    int r = store_open(&(struct store_conf){ .path = file, .key_path = key_path }, &store, err);

    if (r == 0)
        r = store_call(store, move_audit, &v, err);
    if (r > 0)
        r = aq_fail(err, EUCLEAN, "the database is damaged: %.200s", v.findings.data);
    strbuf_done(&v.findings);
    *ret_rows = v.rows;
    return r;
}

/* store_tx_fn */
static int move_write_mark(struct store_tx *tx, void *data, struct aq_error *err)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)*(int64_t *)data);
    return setting_set(tx, SETTING_RESTORED, text, err);
}

int store_mark_restored(const char *where, const char *key_path, int64_t made_usec,
                        struct aq_error *err)
{
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    const struct store_conf conf = { .path = where,
                                     .key_path = key_path,
                                     .epoch_floor = lease_restored_epoch() };
    int r = store_open(&conf, &store, err);

    return r < 0 ? r : store_call(store, move_write_mark, &made_usec, err);
}
