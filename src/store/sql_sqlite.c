/* SQLite: one file in WAL mode, every commit synced */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/sql.h"
#include "store/sqlite_wal.h"

#define BUSY_TIMEOUT_MSEC 2000
/* Of a new file. A commit writes whole pages, most of them for one row or index
 * entry: half of SQLite's own size halves what is copied and flushed.
 */
#define PAGE_BYTES "2048"

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

static struct sqlite *sqlite_of(const struct sql *sql)
{
    return (struct sqlite *)(uintptr_t)sql;
}

static sqlite3_stmt *stmt_of(const struct sql_stmt *stmt)
{
    return ((const struct sqlite_stmt *)stmt)->q;
}

/* Fill 'err' from the connection's last error. */
static int fail(sqlite3 *db, struct aq_error *err)
{
    int code = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    const char *text = db ? sqlite3_errmsg(db) : "out of memory";

    if (code == SQLITE_CONSTRAINT_FOREIGNKEY)
        return aq_fail(err, ENOENT, "the database has no row that this one refers to");
    switch (code & 0xff) {
    case SQLITE_CONSTRAINT:
        return aq_fail(err, code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY
                                ? EEXIST : EINVAL, "%s", text);
    case SQLITE_FULL:
        return aq_fail(err, ENOSPC, "the database's disk is full; free space and try again");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return aq_fail(err, EBUSY, "another program holds the database locked (%s); end it and "
                                   "try again", text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return aq_fail(err, EUCLEAN, "the database is damaged (%s); stop the manager and restore "
                                     "a backup, or salvage it with sqlite3's .recover", text);
    case SQLITE_READONLY:
        return aq_fail(err, EROFS, "the database cannot be written (%s); check its owner and the "
                                   "file system", text);
    case SQLITE_CANTOPEN:
        return aq_fail(err, EACCES, "the database cannot be opened (%s); check path and owner",
                       text);
    case SQLITE_NOMEM:
        return aq_fail(err, ENOMEM, "no memory for the database");
    default:
        return aq_fail(err, EIO, "database: %s (SQLite code %d)", text, code);
    }
}

static int run_script(struct sql *sql, const char *script, struct aq_error *err)
{
    sqlite3 *db = sqlite_of(sql)->db;

    return sqlite3_exec(db, script, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(db, err);
}

static void close_db(struct sql *sql)
{
    struct sqlite *s = sqlite_of(sql);

    (void)sqlite3_close(s->db);
    free(s);
}

/* Of sqlite3_wal_hook(): takes the place of automatic checkpoints. */
static int on_commit(void *data, sqlite3 *db, const char *name, int pages)
{
    struct sqlite *s = data;

    (void)db;
    (void)name;
    s->log_bytes = (size_t)pages * s->page_bytes;
    return SQLITE_OK;
}

static size_t log_bytes(const struct sql *sql)
{
    return sqlite_of(sql)->log_bytes;
}

static int checkpoint(struct sql *sql, struct aq_error *err)
{
    sqlite3 *db = sqlite_of(sql)->db;
    int r = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    return r == SQLITE_OK ? 0 : fail(db, err);
}

static int read_page_size(struct sqlite *s, struct aq_error *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(s->db, "PRAGMA page_size", -1, &q, NULL) != SQLITE_OK)
        return fail(s->db, err);
    if (sqlite3_step(q) == SQLITE_ROW)
        s->page_bytes = (size_t)sqlite3_column_int64(q, 0);
    return sqlite3_finalize(q) == SQLITE_OK ? 0 : fail(s->db, err);
}

static int set_up(struct sqlite *s, const struct sql_conf *conf, struct aq_error *err)
{
    char cache[64];
    int r;

    (void)snprintf(cache, sizeof(cache), "PRAGMA cache_size=-%zu", conf->cache_bytes / 1024);
    (void)sqlite3_extended_result_codes(s->db, 1);
    (void)sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MSEC);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    /* LIKE tells case apart, as in PostgreSQL. */
    r = run_script(&s->sql, "PRAGMA case_sensitive_like=ON; PRAGMA temp_store=MEMORY", err);
    if (r == 0)
        r = run_script(&s->sql, cache, err);
    if (r == 0 && conf->read_only)
        return run_script(&s->sql, "PRAGMA query_only=ON", err);
    if (r == 0)
        r = run_script(&s->sql, "PRAGMA page_size=" PAGE_BYTES ";"
                                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                                "PRAGMA foreign_keys=ON; PRAGMA journal_size_limit=67108864", err);
    if (r == 0)
        r = read_page_size(s, err);
    if (r == 0)
        (void)sqlite3_wal_hook(s->db, on_commit, s);
    return r;
}

static void init_library(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* counters behind a lock nobody reads */
}

static int open_db(const struct sql_conf *conf, struct sql **ret, struct aq_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
    struct sqlite *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return aq_fail(err, ENOMEM, "database '%s'", conf->where);
    (void)pthread_once(&once, init_library);
    if (!conf->read_only)
        flags |= SQLITE_OPEN_CREATE;
    r = sqlite3_open_v2(conf->where, &s->db, flags, sqlite_wal_layer()) == SQLITE_OK
            ? set_up(s, conf, err) : fail(s->db, err);
    if (r < 0) {
        (void)aq_error_wrap(err, "'%s'", conf->where);
        close_db(&s->sql);
        return r;
    }
    *ret = &s->sql;
    return 0;
}

static bool is_in_transaction(const struct sql *sql)
{
    return !sqlite3_get_autocommit(sqlite_of(sql)->db);
}

static int audit(struct sql *sql, struct strbuf *out, struct aq_error *err)
{
    sqlite3 *db = sqlite_of(sql)->db;
    sqlite3_stmt *q;
    int found = 0, code;

    if (sqlite3_prepare_v2(db, "PRAGMA quick_check(20)", -1, &q, NULL) != SQLITE_OK)
        return fail(db, err);
    while ((code = sqlite3_step(q)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(q, 0);

        if (text && strcmp(text, "ok") != 0) {
            strbuf_addf(out, "database file: %s\n", text);
            found++;
        }
    }
    if (code != SQLITE_DONE)
        found = fail(db, err);
    (void)sqlite3_finalize(q);
    return found;
}

static int copy_pages(sqlite3 *from, const char *path, struct aq_error *err)
{
    sqlite3_backup *backup = NULL;
    sqlite3 *to = NULL;
    int r = 0;

    if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK)
        backup = sqlite3_backup_init(to, "main", from, "main");
    if (backup)
        (void)sqlite3_backup_step(backup, -1);
    if (!backup || sqlite3_backup_finish(backup) != SQLITE_OK)
        r = fail(to, err);
    if (sqlite3_close(to) != SQLITE_OK && r == 0)
        r = aq_fail(err, EIO, "close '%s'", path);
    return r;
}

/* The name appears when the copy is whole and on disk. */
static int backup_db(struct sql *sql, const char *path, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *partial = aq_format("%s.partial", path);
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r;

    if (!partial)
        return aq_fail(err, ENOMEM, "backup");
    fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return aq_fail_errno(err, "create '%s'", partial);
    r = copy_pages(sqlite_of(sql)->db, partial, err);
    if (r == 0 && fsync(fd) < 0)
        r = aq_fail_errno(err, "sync '%s'", partial);
    if (r == 0 && link(partial, path) < 0) /* unlike rename, keeps what is there */
        r = aq_fail_errno(err, "name '%s'", path);
    (void)unlink(partial);
    return r;
}

static int prepare(struct sql *sql, const char *text, struct sql_stmt **ret, struct aq_error *err)
{
    sqlite3 *db = sqlite_of(sql)->db;
    struct sqlite_stmt *s = calloc(1, sizeof(*s));

    if (!s)
        return aq_fail(err, ENOMEM, "SQL statement");
    if (sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &s->q, NULL) != SQLITE_OK) {
        free(s);
        return fail(db, err);
    }
    *ret = &s->stmt;
    return 0;
}

static void finish(struct sql_stmt *stmt)
{
    (void)sqlite3_finalize(stmt_of(stmt));
    free(stmt);
}

static int bound(int code)
{
    return code == SQLITE_OK ? 0 : -ENOMEM;
}

static int put_int(struct sql_stmt *stmt, int at, int64_t value)
{
    return bound(sqlite3_bind_int64(stmt_of(stmt), at + 1, value));
}

static int put_text(struct sql_stmt *stmt, int at, const char *text)
{
    return bound(sqlite3_bind_text(stmt_of(stmt), at + 1, text, -1, SQLITE_STATIC));
}

static int put_blob(struct sql_stmt *stmt, int at, const void *bytes, size_t len)
{
    return bound(sqlite3_bind_blob64(stmt_of(stmt), at + 1, bytes, len, SQLITE_STATIC));
}

static int step(struct sql_stmt *stmt, struct aq_error *err)
{
    int code = sqlite3_step(stmt_of(stmt));

    if (code == SQLITE_ROW)
        return 1;
    return code == SQLITE_DONE ? 0 : fail(sqlite3_db_handle(stmt_of(stmt)), err);
}

static void reset(struct sql_stmt *stmt)
{
    (void)sqlite3_reset(stmt_of(stmt));
    (void)sqlite3_clear_bindings(stmt_of(stmt));
}

static int changes(struct sql_stmt *stmt)
{
    return sqlite3_changes(sqlite3_db_handle(stmt_of(stmt)));
}

static int64_t get_int(struct sql_stmt *stmt, int at)
{
    return sqlite3_column_int64(stmt_of(stmt), at);
}

static const char *get_text(struct sql_stmt *stmt, int at)
{
    return (const char *)sqlite3_column_text(stmt_of(stmt), at);
}

static const void *get_blob(struct sql_stmt *stmt, int at, size_t *ret_len)
{
    const void *bytes = sqlite3_column_blob(stmt_of(stmt), at);

    *ret_len = (size_t)sqlite3_column_bytes(stmt_of(stmt), at);
    return bytes;
}

static bool is_null(struct sql_stmt *stmt, int at)
{
    return sqlite3_column_type(stmt_of(stmt), at) == SQLITE_NULL;
}

const struct sql_ops sql_sqlite = {
    .open = open_db,
    .close = close_db,
    .run_script = run_script,
    .is_in_transaction = is_in_transaction,
    .audit = audit,
    .log_bytes = log_bytes,
    .checkpoint = checkpoint,
    .backup = backup_db,
    .prepare = prepare,
    .finish = finish,
    .put_int = put_int,
    .put_text = put_text,
    .put_blob = put_blob,
    .step = step,
    .reset = reset,
    .changes = changes,
    .get_int = get_int,
    .get_text = get_text,
    .get_blob = get_blob,
    .is_null = is_null,
};
