/* SPDX-License-Identifier: Apache-2.0 */
/* Statements, kept by their text, over any SQL engine. */
#include "store/sql.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define BUILT_MAX 16 /* kept by a connection; one takes some 10 to 30 kB */

int sql_open(const struct sql_ops *ops, const struct sql_conf *conf, struct sql **ret,
             struct aq_error *err)
{
    struct sql *db;
    int r = ops->open(conf, &db, err);

    if (r < 0)
        return r;
    db->ops = ops;
    db->cache = db->built = (struct map)MAP_INIT;
    db->built_uses = 0;
    *ret = db;
    return 0;
}

void sql_close(struct sql *db)
{
    if (!db)
        return;
    for (size_t i = 0; i < db->cache.count; i++)
        db->ops->finish(db->cache.entries[i].value);
    map_done(&db->cache);
    for (size_t i = 0; i < db->built.count; i++)
        db->ops->finish(db->built.entries[i].value);
    map_done(&db->built);
    db->ops->close(db);
}

int sql_run_script(struct sql *db, const char *script, struct aq_error *err)
{
    return db->ops->run_script(db, script, err);
}

static int sql_prepare_new(struct sql *db, const char *text, enum sql_use use,
                           struct sql_stmt **ret, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = db->ops->prepare(db, text, use, &q, err);

    if (r < 0)
        return r;
    q->db = db;
    *ret = q;
    return 0;
}

int sql_prepare_once(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err)
{
    return sql_prepare_new(db, text, SQL_ONCE, ret, err);
}

int sql_prepare_scan(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err)
{
    return sql_prepare_new(db, text, SQL_SCAN, ret, err);
}

int sql_prepare_kept(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err)
{
    return sql_prepare_new(db, text, SQL_KEPT, ret, err);
}

bool sql_has_kept(const struct sql *db, const void *key)
{
    return map_get(&db->cache, &key, sizeof(key));
}

int sql_prepare(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err)
{
    return sql_prepare_as(db, text, text, ret, err);
}

int sql_prepare_as(struct sql *db, const void *key, const char *text, struct sql_stmt **ret,
                   struct aq_error *err)
{
    struct sql_stmt *q = map_get(&db->cache, &key, sizeof(key));
    int r;

    if (!q) {
        r = sql_prepare_new(db, text, SQL_KEPT, &q, err);
        if (r < 0)
            return r;
        (void)map_set(&db->cache, &key, sizeof(key), q);
        q->is_cached = true;
    }
    assert(q->puts == 0 && q->gets == 0); /* sql_end() was called after its last use */
    *ret = q;
    return 0;
}

/* Make room for one more. False if all are in use. */
static bool sql_drop_oldest_built(struct sql *db)
{
    struct map_entry *oldest = NULL;

    for (size_t i = 0; i < db->built.count; i++) {
        const struct sql_stmt *q = db->built.entries[i].value;

        if (!q->is_busy
            && (!oldest || q->built_use < ((struct sql_stmt *)oldest->value)->built_use))
            oldest = &db->built.entries[i];
    }
    if (oldest)
        db->ops->finish(map_remove(&db->built, oldest->key, oldest->key_len));
    return oldest;
}

int sql_prepare_built(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err)
{
    struct sql_stmt *q = db->ops->is_server ? NULL : map_gets(&db->built, text);
    int r;

    if (db->ops->is_server || (q && q->is_busy)
        || (!q && db->built.count == BUILT_MAX && !sql_drop_oldest_built(db)))
        return sql_prepare_once(db, text, ret, err);
    if (!q) {
        if ((r = sql_prepare_new(db, text, SQL_KEPT, &q, err)) < 0)
            return r;
        (void)map_sets(&db->built, text, q);
        q->is_cached = true;
    }
    q->is_busy = true;
    q->built_use = ++db->built_uses;
    *ret = q;
    return 0;
}

void sql_put_int(struct sql_stmt *q, int64_t value)
{
    q->failed |= q->db->ops->put_int(q, q->puts++, value) < 0;
}

void sql_put_text(struct sql_stmt *q, const char *text)
{
    q->failed |= q->db->ops->put_text(q, q->puts++, text) < 0;
}

void sql_put_blob(struct sql_stmt *q, const void *bytes, size_t len)
{
    q->failed |= q->db->ops->put_blob(q, q->puts++, bytes, len) < 0;
}

void sql_put_null(struct sql_stmt *q)
{
    sql_put_text(q, NULL);
}

void sql_put_time(struct sql_stmt *q, int64_t usec)
{
    if (usec)
        sql_put_int(q, usec);
    else
        sql_put_null(q);
}

void sql_put_uuid(struct sql_stmt *q, const struct uuid *id, char buf[UUID_TEXT_MAX])
{
    sql_put_text(q, uuid_format(id, buf));
}

int sql_step(struct sql_stmt *q, struct aq_error *err)
{
    if (q->failed)
        return aq_fail_oom(err);
    q->gets = 0;
    return q->db->ops->step(q, err);
}

int64_t sql_get_int(struct sql_stmt *q)
{
    return q->db->ops->get_int(q, q->gets++);
}

const char *sql_get_text(struct sql_stmt *q)
{
    return q->db->ops->get_text(q, q->gets++);
}

const void *sql_get_blob(struct sql_stmt *q, size_t *ret_len)
{
    return q->db->ops->get_blob(q, q->gets++, ret_len);
}

bool sql_get_is_null(struct sql_stmt *q)
{
    return q->db->ops->is_null(q, q->gets);
}

struct uuid sql_get_uuid(struct sql_stmt *q)
{
    const char *text = sql_get_text(q);
    struct uuid id = { { 0 } };

    if (text)
        (void)uuid_parse(text, &id);
    return id;
}

static void sql_reset(struct sql_stmt *q)
{
    q->db->ops->reset(q);
    q->puts = q->gets = 0;
    q->failed = q->is_busy = false;
}

void sql_end(struct sql_stmt *q)
{
    if (!q)
        return;
    if (q->is_cached)
        sql_reset(q);
    else
        q->db->ops->finish(q);
}

int sql_run(struct sql_stmt *q, struct aq_error *err)
{
    int r = q->failed ? aq_fail_oom(err) : q->db->ops->queue(q, err);

    sql_end(q);
    return r;
}

int sql_run_kept(struct sql_stmt *q, struct aq_error *err)
{
    int r = q->failed ? aq_fail_oom(err) : q->db->ops->queue(q, err);

    sql_reset(q);
    return r;
}

int sql_change_one(struct sql_stmt *q, sql_refuse_fn refuse, const void *of, struct aq_error *err)
{
    int r = q->failed ? aq_fail_oom(err) : q->db->ops->queue_one(q, refuse, of, err);

    sql_end(q);
    return r;
}

int sql_change(struct sql_stmt *q, struct aq_error *err)
{
    int r = sql_step(q, err);

    if (r == 0)
        r = q->db->ops->changes(q);
    sql_end(q);
    return r;
}

int sql_settle(struct sql *db, struct aq_error *err)
{
    return db->ops->settle(db, err);
}

int sql_run_constant(struct sql *db, const char *text, struct aq_error *err)
{
    struct sql_stmt *q = NULL;
    int r = sql_prepare(db, text, &q, err);

    return r < 0 ? r : sql_run(q, err);
}
