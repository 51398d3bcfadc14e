/* SPDX-License-Identifier: Apache-2.0 */
/* sql.h - one SQL connection, whatever the engine
 *
 * Internal to the store; nothing above knows an engine. Statements are written
 * in what SQLite and PostgreSQL share: '?' parameters, ON CONFLICT, RETURNING,
 * row values. Migrations use the types INTEGER (64 bits), TEXT and BLOB and
 * may end a table in WITHOUT ROWID; an engine that names these differently
 * translates the words.
 *
 * A connection is used by one thread at a time. Parameters are put, columns
 * got in order; texts and blobs put are borrowed until the statement was run,
 * those got until the next step. Errors of the engine become -errno:
 *   -EEXIST unique, -ENOENT foreign key, -EINVAL check or not null, -ENOSPC,
 *   -EBUSY locked, -EROFS, -EUCLEAN damaged, -ENOMEM, -EIO the rest.
 */
#ifndef AQ_STORE_SQL_H
#define AQ_STORE_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/uuid.h"

struct sql;
struct sql_stmt;

struct sql_conf {
    const char *where;
    bool read_only;
    size_t cache_bytes; /* of pages kept in memory */
};

/* An engine. */
struct sql_ops {
    int (*open)(const struct sql_conf *conf, struct sql **ret, struct aq_error *err);
    void (*close)(struct sql *db);
    int (*run_script)(struct sql *db, const char *script, struct aq_error *err);
    bool (*is_in_transaction)(const struct sql *db);
    int (*audit)(struct sql *db, struct strbuf *out, struct aq_error *err);
    /* The log of commits that the file lacks, as of the last commit. */
    size_t (*log_bytes)(const struct sql *db);
    /* Write them to the file, as far as readers let it; beside other connections. */
    int (*checkpoint)(struct sql *db, struct aq_error *err);
    int (*backup)(struct sql *db, const char *path, struct aq_error *err);

    int (*prepare)(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err);
    void (*finish)(struct sql_stmt *q);
    int (*put_int)(struct sql_stmt *q, int at, int64_t value);
    int (*put_text)(struct sql_stmt *q, int at, const char *text);
    int (*put_blob)(struct sql_stmt *q, int at, const void *bytes, size_t len);
    int (*step)(struct sql_stmt *q, struct aq_error *err); /* 1 row, 0 end */
    void (*reset)(struct sql_stmt *q);
    int (*changes)(struct sql_stmt *q); /* by the last step */
    int64_t (*get_int)(struct sql_stmt *q, int at);
    const char *(*get_text)(struct sql_stmt *q, int at);
    const void *(*get_blob)(struct sql_stmt *q, int at, size_t *ret_len);
    bool (*is_null)(struct sql_stmt *q, int at);
};

extern const struct sql_ops sql_sqlite;

/* What every engine's connection and statement begin with. */
struct sql {
    const struct sql_ops *ops;
    struct map cache; /* address of a statement's text -> struct sql_stmt */
};

struct sql_stmt {
    struct sql *db;
    int puts, gets; /* parameters put, columns got so far */
    bool is_cached, failed;
};

int sql_open(const struct sql_ops *ops, const struct sql_conf *conf, struct sql **ret,
             struct aq_error *err);
void sql_close(struct sql *db);
AQ_DEFINE_CLEANUP(struct sql, sql_close)

/* Several statements without parameters. */
int sql_run_script(struct sql *db, const char *script, struct aq_error *err);

/* A statement that is kept for the next use: 'text' is a constant, known by
 * its address. It may not be in use already.
 */
int sql_prepare(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err);

/* A statement for this once; sql_end() releases it. */
int sql_prepare_once(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err);

void sql_put_int(struct sql_stmt *q, int64_t value);
void sql_put_text(struct sql_stmt *q, const char *text);              /* NULL = null */
void sql_put_blob(struct sql_stmt *q, const void *bytes, size_t len); /* NULL = null */
void sql_put_null(struct sql_stmt *q);
/* 0 = null: times that have not come */
void sql_put_time(struct sql_stmt *q, int64_t usec);
/* Copied into 'buf', which must live until the statement was run. */
void sql_put_uuid(struct sql_stmt *q, const struct uuid *id, char buf[UUID_TEXT_MAX]);

/* The next row: 1, or 0 at the end, or -errno. */
int sql_step(struct sql_stmt *q, struct aq_error *err);
int64_t sql_get_int(struct sql_stmt *q);      /* null = 0 */
const char *sql_get_text(struct sql_stmt *q); /* null = NULL */
const void *sql_get_blob(struct sql_stmt *q, size_t *ret_len);
bool sql_get_is_null(struct sql_stmt *q);     /* of the next column, which stays the next */
struct uuid sql_get_uuid(struct sql_stmt *q); /* null or malformed = nil */

/* Done with the rows: ready for the next use, or released. NULL is fine. */
void sql_end(struct sql_stmt *q);
AQ_DEFINE_CLEANUP(struct sql_stmt, sql_end)

/* Run a statement that gives no rows, or whose rows do not matter, and end it. */
int sql_run(struct sql_stmt *q, struct aq_error *err);

/* The same for an INSERT, UPDATE or DELETE: how many rows it changed. */
int sql_change(struct sql_stmt *q, struct aq_error *err);

#endif
