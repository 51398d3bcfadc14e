/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite: one file in WAL mode, every commit synced */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/sql.h"
#include "store/sqlite_wal.h"

#define BUSY_TIMEOUT_MSEC 2000
/* Of a new file. A commit writes whole pages, most of them for one row or index
 * entry: half of SQLite's own size halves what is copied and flushed.
 */
#define PAGE_BYTES "2048"
#define COPY_PAGES 256 /* between two pauses; about a millisecond */

struct sqlite {
    struct sql sql; /* first */
    sqlite3 *db;
    size_t log_bytes; /* after the last commit */
    size_t page_bytes;
};

struct sqlite_stmt {
    struct sql_stmt stmt; /* first */
    sqlite3_stmt *q;
};

static struct sqlite *sql_sqlite_of(const struct sql *sql)
{
    return (struct sqlite *)(uintptr_t)sql;
}

static sqlite3_stmt *sql_sqlite_stmt_of(const struct sql_stmt *stmt)
{
    return ((const struct sqlite_stmt *)stmt)->q;
}

static const char *sql_sqlite_get_path(sqlite3 *db)
{
    const char *path = sqlite3_db_filename(db, "main");

    return path ? path : "";
}

/* SQLite has a code of its own for a full disk, not for a quota, nor for an index of the log
 * that does not fit.
 */
static bool sql_sqlite_is_full(sqlite3 *db, int code)
{
    int cause = db ? sqlite3_system_errno(db) : 0;

    return (code & 0xff) == SQLITE_FULL || ((code & 0xff) == SQLITE_IOERR && fs_is_full(cause));
}

static int sql_sqlite_fail_read_only(sqlite3 *db, const char *text, struct aq_error *err)
{
    return aq_fail(err, EROFS,
                   "nothing was changed: the database '%s' cannot be written (%s); check its "
                   "owner and whether the file system is mounted read-only",
                   sql_sqlite_get_path(db), text);
}

/* Fill 'err' from the connection's last error. */
static int sql_sqlite_fail(sqlite3 *db, struct aq_error *err)
{
    int code = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    const char *text = db ? sqlite3_errmsg(db) : "out of memory";

    if (code == SQLITE_CONSTRAINT_FOREIGNKEY)
        return aq_fail(err, ENOENT, "the database has no row that this one refers to");
    if (code == SQLITE_IOERR_NOMEM)
        return aq_fail_oom(err);
    if (sql_sqlite_is_full(db, code))
        return aq_fail(err, ENOSPC,
                       "the file system of the database '%s' is full or over a quota; free space "
                       "there and try again",
                       sql_sqlite_get_path(db));
    if ((code & 0xff) == SQLITE_IOERR && sqlite3_system_errno(db) == EROFS)
        return sql_sqlite_fail_read_only(db, strerror(EROFS), err);
    switch (code & 0xff) {
    case SQLITE_CONSTRAINT:
        return aq_fail(err,
                       code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY
                           ? EEXIST
                           : EINVAL,
                       "%s", text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return aq_fail(err, EBUSY,
                       "another program holds the database locked (%s); end it and "
                       "try again",
                       text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return aq_fail(err, EUCLEAN,
                       "the database is damaged (%s); stop the manager and restore "
                       "a backup, or salvage it with sqlite3's .recover",
                       text);
    case SQLITE_READONLY:
        return sql_sqlite_fail_read_only(db, text, err);
    case SQLITE_CANTOPEN:
        return aq_fail(err, EACCES, "the database cannot be opened (%s); check path and owner",
                       text);
    case SQLITE_NOMEM:
        return aq_fail_oom(err);
    default:
        return aq_fail(err, EIO, "database: %s (SQLite code %d)", text, code);
    }
}

static int sql_sqlite_run_script(struct sql *sql, const char *script, struct aq_error *err)
{
    sqlite3 *db = sql_sqlite_of(sql)->db;

    return sqlite3_exec(db, script, NULL, NULL, NULL) == SQLITE_OK ? 0 : sql_sqlite_fail(db, err);
}

static void sql_sqlite_close(struct sql *sql)
{
    struct sqlite *s = sql_sqlite_of(sql);

    (void)sqlite3_close(s->db);
    free(s);
}

/* Of sqlite3_wal_hook(): takes the place of automatic checkpoints. */
static int sql_sqlite_on_commit(void *data, sqlite3 *db, const char *name, int pages)
{
    struct sqlite *s = data;

    (void)db;
    (void)name;
    s->log_bytes = (size_t)pages * s->page_bytes;
    return SQLITE_OK;
}

static size_t sql_sqlite_log_bytes(const struct sql *sql)
{
    return sql_sqlite_of(sql)->log_bytes;
}

static int sql_sqlite_checkpoint(struct sql *sql, struct aq_error *err)
{
    sqlite3 *db = sql_sqlite_of(sql)->db;
    int r = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    return r == SQLITE_OK ? 0 : sql_sqlite_fail(db, err);
}

static int sql_sqlite_read_page_size(struct sqlite *s, struct aq_error *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(s->db, "PRAGMA page_size", -1, &q, NULL) != SQLITE_OK)
        return sql_sqlite_fail(s->db, err);
    if (sqlite3_step(q) == SQLITE_ROW)
        s->page_bytes = (size_t)sqlite3_column_int64(q, 0);
    return sqlite3_finalize(q) == SQLITE_OK ? 0 : sql_sqlite_fail(s->db, err);
}

static int sql_sqlite_set_up(struct sqlite *s, const struct sql_conf *conf, struct aq_error *err)
{
    char cache[64];
    int r;

    (void)snprintf(cache, sizeof(cache), "PRAGMA cache_size=-%zu", conf->cache_bytes / 1024);
    (void)sqlite3_extended_result_codes(s->db, 1);
    (void)sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MSEC);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (conf->is_frozen) {
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        (void)sqlite3_exec(s->db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
    }
    /* LIKE tells case apart, as in PostgreSQL. */
    r = sql_sqlite_run_script(&s->sql, "PRAGMA case_sensitive_like=ON; PRAGMA temp_store=MEMORY",
                              err);
    if (r == 0)
        r = sql_sqlite_run_script(&s->sql, cache, err);
    if (r == 0 && conf->read_only)
        return sql_sqlite_run_script(&s->sql, "PRAGMA query_only=ON", err);
    if (r == 0)
        r = sql_sqlite_run_script(&s->sql,
                                  "PRAGMA page_size=" PAGE_BYTES ";"
                                  "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                                  "PRAGMA foreign_keys=ON; PRAGMA journal_size_limit=67108864",
                                  err);
    if (r == 0)
        r = sql_sqlite_read_page_size(s, err);
    if (r == 0)
        (void)sqlite3_wal_hook(s->db, sql_sqlite_on_commit, s);
    return r;
}

static void sql_sqlite_init_library(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* counters behind a lock nobody reads */
}

/* Is there no room for the index of the log? It is a file of 32 KiB. Of the first connection alone:
 * to close the file drops the locks that others of this process have on it.
 */
static bool sql_sqlite_lacks_index(sqlite3 *db, const char *where)
{
    int code = sqlite3_extended_errcode(db);
    AQ_CLEANUP(aq_freep) char *index = aq_format("%s-shm", where);

    /* A file that is there already is truncated first; a quota may refuse even that (btrfs). */
    return code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_SHMMAP
           || code == SQLITE_IOERR_SHMOPEN
           || ((code & 0xff) == SQLITE_CANTOPEN && !sqlite_wal_has_room_for(index));
}

static int sql_sqlite_open_in(const char *layer, const struct sql_conf *conf, struct sql **ret,
                              bool *ret_lacks_index, struct aq_error *err)
{
    int flags = SQLITE_OPEN_NOMUTEX;
    struct sqlite *s = aq_alloc(sizeof(*s));
    int r;

    flags |= conf->is_frozen ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (!conf->read_only && !conf->is_frozen)
        flags |= SQLITE_OPEN_CREATE;
    r = sqlite3_open_v2(conf->where, &s->db, flags, layer) == SQLITE_OK
            ? sql_sqlite_set_up(s, conf, err)
            : sql_sqlite_fail(s->db, err);
    if (r < 0) {
        *ret_lacks_index = s->db && !conf->read_only && sql_sqlite_lacks_index(s->db, conf->where);
        (void)aq_error_wrap(err, "'%s'", conf->where);
        sql_sqlite_close(&s->sql);
        return r;
    }
    *ret = &s->sql;
    return 0;
}

/* Without room for the index of the log, the writer keeps it in memory. Readers of this process
 * share it; SQLite's lock keeps other processes out, as they would make an index of their own.
 */
static int sql_sqlite_open(const struct sql_conf *conf, struct sql **ret, struct aq_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool lacks_index = false;
    int r;

    (void)pthread_once(&once, sql_sqlite_init_library);
    if (conf->is_frozen)
        return sql_sqlite_open_in(sqlite_wal_frozen_layer(), conf, ret, &lacks_index, err);
    r = sql_sqlite_open_in(sqlite_wal_layer(), conf, ret, &lacks_index, err);
    if (r == 0 || !lacks_index)
        return r;
    r = sql_sqlite_open_in(sqlite_wal_exclusive_layer(), conf, ret, &lacks_index, err);
    if (r == 0)
        log_warning("database '%s': cannot create '%s-shm' on a full file system; its contents are "
                    "in memory, and other programs cannot open the database until the next start",
                    conf->where, conf->where);
    return r;
}

static bool sql_sqlite_is_in_transaction(struct sql *sql)
{
    return !sqlite3_get_autocommit(sql_sqlite_of(sql)->db);
}

static int sql_sqlite_is_empty(struct sql *sql, struct aq_error *err)
{
    sqlite3 *db = sql_sqlite_of(sql)->db;
    sqlite3_stmt *q;
    int code;

    if (sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_master LIMIT 1", -1, &q, NULL) != SQLITE_OK)
        return sql_sqlite_fail(db, err);
    code = sqlite3_step(q);
    (void)sqlite3_finalize(q);
    return code == SQLITE_ROW ? 0 : code == SQLITE_DONE ? 1 : sql_sqlite_fail(db, err);
}

static int sql_sqlite_audit(struct sql *sql, struct strbuf *out, struct aq_error *err)
{
    sqlite3 *db = sql_sqlite_of(sql)->db;
    sqlite3_stmt *q;
    int found = 0, code;

    if (sqlite3_prepare_v2(db, "PRAGMA quick_check(20)", -1, &q, NULL) != SQLITE_OK)
        return sql_sqlite_fail(db, err);
    while ((code = sqlite3_step(q)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(q, 0);

        if (text && strcmp(text, "ok") != 0) {
            strbuf_addf(out, "database file: %s\n", text);
            found++;
        }
    }
    if (code != SQLITE_DONE)
        found = sql_sqlite_fail(db, err);
    (void)sqlite3_finalize(q);
    return found;
}

static int sql_sqlite_copy_pages(sqlite3 *from, const char *path, struct pace *pace,
                                 struct aq_error *err)
{
    sqlite3_backup *backup = NULL;
    sqlite3 *to = NULL;
    int r = 0;

    /* Nobody has it yet: it is synced once, as a whole. */
    if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK
        && sqlite3_exec(to, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF", NULL, NULL, NULL)
               == SQLITE_OK)
        backup = sqlite3_backup_init(to, "main", from, "main");
    while (backup && sqlite3_backup_step(backup, COPY_PAGES) == SQLITE_OK)
        pace_step(pace);
    if (!backup || sqlite3_backup_finish(backup) != SQLITE_OK)
        r = sql_sqlite_fail(to, err);
    if (sqlite3_close(to) != SQLITE_OK && r == 0)
        r = aq_fail(err, EIO, "close '%s'", path);
    return r;
}

/* In one view: a copy would begin again whenever somebody else commits between two steps. */
static int sql_sqlite_copy_view(struct sql *sql, const char *path, struct pace *pace,
                                struct aq_error *err)
{
    bool is_ours = !sql_sqlite_is_in_transaction(sql);
    int r = is_ours ? sql_sqlite_run_script(sql, "BEGIN; SELECT 1 FROM sqlite_master LIMIT 1", err)
                    : 0;

    if (r == 0)
        r = sql_sqlite_copy_pages(sql_sqlite_of(sql)->db, path, pace, err);
    if (is_ours)
        (void)sql_sqlite_run_script(sql, "ROLLBACK", NULL);
    return r;
}

/* The name appears when the copy is whole and on disk. */
static int sql_sqlite_backup(struct sql *sql, const char *path, struct pace *pace,
                             struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *partial = aq_format("%s.partial", path);
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r;

    fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return aq_fail_errno(err, "create '%s'", partial);
    r = sql_sqlite_copy_view(sql, partial, pace, err);
    if (r == 0 && fsync(fd) < 0)
        r = aq_fail_errno(err, "sync '%s'", partial);
    if (r == 0 && link(partial, path) < 0) /* unlike rename, keeps what is there */
        r = aq_fail_errno(err, "name '%s'", path);
    (void)unlink(partial);
    return r;
}

static int sql_sqlite_prepare(struct sql *sql, const char *text, enum sql_use use,
                              struct sql_stmt **ret, struct aq_error *err)
{
    const unsigned flags = use == SQL_KEPT ? SQLITE_PREPARE_PERSISTENT : 0;
    sqlite3 *db = sql_sqlite_of(sql)->db;
    struct sqlite_stmt *s = aq_alloc(sizeof(*s));

    if (sqlite3_prepare_v3(db, text, -1, flags, &s->q, NULL) != SQLITE_OK) {
        free(s);
        return sql_sqlite_fail(db, err);
    }
    *ret = &s->stmt;
    return 0;
}

static void sql_sqlite_finish(struct sql_stmt *stmt)
{
    (void)sqlite3_finalize(sql_sqlite_stmt_of(stmt));
    free(stmt);
}

static int sql_sqlite_check_bind(int code)
{
    return code == SQLITE_OK ? 0 : -ENOMEM;
}

static int sql_sqlite_put_int(struct sql_stmt *stmt, int at, int64_t value)
{
    return sql_sqlite_check_bind(sqlite3_bind_int64(sql_sqlite_stmt_of(stmt), at + 1, value));
}

static int sql_sqlite_put_text(struct sql_stmt *stmt, int at, const char *text)
{
    return sql_sqlite_check_bind(
        sqlite3_bind_text(sql_sqlite_stmt_of(stmt), at + 1, text, -1, SQLITE_STATIC));
}

static int sql_sqlite_put_blob(struct sql_stmt *stmt, int at, const void *bytes, size_t len)
{
    return sql_sqlite_check_bind(
        sqlite3_bind_blob64(sql_sqlite_stmt_of(stmt), at + 1, bytes, len, SQLITE_STATIC));
}

static int sql_sqlite_step(struct sql_stmt *stmt, struct aq_error *err)
{
    int code = sqlite3_step(sql_sqlite_stmt_of(stmt));

    if (code == SQLITE_ROW)
        return 1;
    return code == SQLITE_DONE ? 0
                               : sql_sqlite_fail(sqlite3_db_handle(sql_sqlite_stmt_of(stmt)), err);
}

static void sql_sqlite_reset(struct sql_stmt *stmt)
{
    (void)sqlite3_reset(sql_sqlite_stmt_of(stmt));
    (void)sqlite3_clear_bindings(sql_sqlite_stmt_of(stmt));
}

static int sql_sqlite_changes(struct sql_stmt *stmt)
{
    return sqlite3_changes(sqlite3_db_handle(sql_sqlite_stmt_of(stmt)));
}

/* Nothing waits here: what is queued is run. */
static int sql_sqlite_queue(struct sql_stmt *stmt, struct aq_error *err)
{
    int r;

    while ((r = sql_sqlite_step(stmt, err)) > 0) {
        /* rows do not matter here */
    }
    return r;
}

static int sql_sqlite_queue_one(struct sql_stmt *stmt, sql_refuse_fn refuse, const void *of,
                                struct aq_error *err)
{
    int r = sql_sqlite_queue(stmt, err);

    if (r == 0 && sql_sqlite_changes(stmt) == 0)
        r = -ENODATA;
    return r == -ENODATA || r == -EEXIST || r == -ENOENT ? refuse(of, r, err) : r;
}

static int sql_sqlite_settle(struct sql *sql, struct aq_error *err)
{
    (void)sql;
    (void)err;
    return 0;
}

static int64_t sql_sqlite_get_int(struct sql_stmt *stmt, int at)
{
    return sqlite3_column_int64(sql_sqlite_stmt_of(stmt), at);
}

static const char *sql_sqlite_get_text(struct sql_stmt *stmt, int at)
{
    return (const char *)sqlite3_column_text(sql_sqlite_stmt_of(stmt), at);
}

static const void *sql_sqlite_get_blob(struct sql_stmt *stmt, int at, size_t *ret_len)
{
    const void *bytes = sqlite3_column_blob(sql_sqlite_stmt_of(stmt), at);

    *ret_len = (size_t)sqlite3_column_bytes(sql_sqlite_stmt_of(stmt), at);
    return bytes;
}

static bool sql_sqlite_is_null(struct sql_stmt *stmt, int at)
{
    return sqlite3_column_type(sql_sqlite_stmt_of(stmt), at) == SQLITE_NULL;
}

const struct sql_ops sql_sqlite = {
    .begin_read = "BEGIN",
    .begin_write = "BEGIN IMMEDIATE",
    .describe = "SELECT 'SQLite ' || sqlite_version(), page_count * page_size"
                " FROM pragma_page_count(), pragma_page_size()",
    .list_columns = "SELECT name, type FROM pragma_table_info(?) ORDER BY cid",
    .open = sql_sqlite_open,
    .close = sql_sqlite_close,
    .run_script = sql_sqlite_run_script,
    .is_in_transaction = sql_sqlite_is_in_transaction,
    .is_empty = sql_sqlite_is_empty,
    .audit = sql_sqlite_audit,
    .log_bytes = sql_sqlite_log_bytes,
    .checkpoint = sql_sqlite_checkpoint,
    .backup = sql_sqlite_backup,
    .prepare = sql_sqlite_prepare,
    .finish = sql_sqlite_finish,
    .put_int = sql_sqlite_put_int,
    .put_text = sql_sqlite_put_text,
    .put_blob = sql_sqlite_put_blob,
    .step = sql_sqlite_step,
    .queue = sql_sqlite_queue,
    .queue_one = sql_sqlite_queue_one,
    .settle = sql_sqlite_settle,
    .reset = sql_sqlite_reset,
    .changes = sql_sqlite_changes,
    .get_int = sql_sqlite_get_int,
    .get_text = sql_sqlite_get_text,
    .get_blob = sql_sqlite_get_blob,
    .is_null = sql_sqlite_is_null,
};
