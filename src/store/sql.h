/* SPDX-License-Identifier: Apache-2.0 */
/* sql.h - one SQL connection, whatever the engine
 *
 * Internal to the store; nothing above knows an engine. Statements are written
 * in what SQLite and PostgreSQL share: '?' parameters, ON CONFLICT, RETURNING,
 * row values, NULLS FIRST. A parameter whose type its place does not tell (? IS
 * NULL) is CAST. Migrations use the types INTEGER (64 bits), TEXT (compared by
 * bytes) and BLOB and may end a table in WITHOUT ROWID; a query may say INDEXED
 * BY: an engine that has other words for these, or none, translates them.
 *
 * A connection is used by one thread at a time. Parameters are put, columns
 * got in order; texts and blobs put are borrowed until the statement was run,
 * those got until the next step. Errors of the engine become -errno:
 *   -EEXIST unique, -ENOENT foreign key, -EINVAL check or not null, -ENOSPC,
 *   -EBUSY locked, -EROFS, -EUCLEAN damaged, -EACCES, -EHOSTDOWN a server that
 *   cannot be reached, -ENOMEM, -EIO the rest.
 *
 * An engine that is a server sends what sql_run() and sql_change_one() are
 * given together with what follows: their errors may then come from a later
 * call, at the latest from sql_settle(). sql_step(), sql_change(),
 * sql_run_script() and sql_prepare() settle before they return.
 */
#ifndef AQ_STORE_SQL_H
#define AQ_STORE_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "base/pace.h"
#include "base/strbuf.h"
#include "base/uuid.h"

struct sql;
struct sql_stmt;

struct sql_conf {
    const char *where; /* a file, or postgresql://... */
    bool read_only;
    bool is_frozen;     /* a file on a file system that nothing can be written to */
    bool is_foreign;    /* another program's: a server of any version and encoding */
    size_t cache_bytes; /* of pages kept in memory */
    /* Of servers: the session's name there, NULL = "aliquot"; for how long it waits for a lock, and
     * for an answer, after which the connection counts as lost; 0 = forever.
     */
    const char *session;
    unsigned lock_msec, answer_msec;
};

/* Says in 'err' what it means to the client that asked that 'of' was refused with 'r': an
 * error of the engine, or -ENODATA: no row was changed. Returns the error.
 */
typedef int (*sql_refuse_fn)(const void *of, int r, struct aq_error *err);

enum sql_use {
    SQL_ONCE,
    SQL_KEPT, /* to be run often */
    SQL_SCAN, /* many rows, not all of them in memory */
};

/* An engine. */
struct sql_ops {
    const char *begin_read, *begin_write; /* one consistent view; what is to be committed */
    bool is_server; /* others may use the database at the same time: see store/lease.h */
    int (*open)(const struct sql_conf *conf, struct sql **ret, struct aq_error *err);
    void (*close)(struct sql *db);
    int (*run_script)(struct sql *db, const char *script, struct aq_error *err);
    bool (*is_in_transaction)(struct sql *db);
    /* From here on in the transaction: go by indexes, whatever is known of the tables; or as
     * it likes. NULL = it goes by indexes anyway.
     */
    const char *prefer_indexes, *prefer_any;
    /* Likewise: take rows in their order from an index, if one has it. NULL = it is told by
     * INDEXED BY.
     */
    const char *avoid_sorts, *allow_sorts;
    const char *list_columns; /* of the table '?': name, INTEGER TEXT or BLOB */
    const char *describe;     /* its name and version; bytes of the database */
    int (*is_empty)(struct sql *db, struct aq_error *err); /* 1 without any table of ours */
    /* Only of servers: was the connection lost; make another (0 also if it was not). */
    bool (*is_lost)(const struct sql *db);
    int (*connect_again)(struct sql *db, struct aq_error *err);
    /* Only of servers: -EINVAL behind a pooler that gives a connection to a transaction. */
    int (*check_pooler)(struct sql *db, struct aq_error *err);
    /* Only of servers: a lock that lasts until unlock(), or as long as the connection. 1, or 0 if
     * another connection has it. end_lock_holder() ends that one.
     */
    int (*lock)(struct sql *db, struct aq_error *err);
    int (*unlock)(struct sql *db, struct aq_error *err);
    int (*end_lock_holder)(struct sql *db, struct aq_error *err);
    /* Only of servers, about other sessions on this database whose names begin with 'prefix'. Count
     * those that may not be ended by us; those with a transaction that wrote, on which the server
     * is at work (it does not wait for the client's next statement); all. End those that are not
     * at work, or all. Conditions that the holder of the row manager_lease l has some, and some on
     * which the server is at work. An expression: its wall clock at its last commit, 0 = not known,
     * also where the table has no such column yet.
     */
    int (*count_protected_sessions)(struct sql *db, const char *prefix, struct aq_error *err);
    int (*count_working_sessions)(struct sql *db, const char *prefix, struct aq_error *err);
    int (*count_sessions)(struct sql *db, const char *prefix, struct aq_error *err);
    int (*end_idle_sessions)(struct sql *db, const char *prefix, struct aq_error *err);
    int (*end_sessions)(struct sql *db, const char *prefix, struct aq_error *err);
    const char *holder_has_sessions, *holder_is_working, *holder_clock;
    /* A line for each reason why what it acknowledges may get lost. */
    int (*list_risks)(struct sql *db, struct strbuf *out, struct aq_error *err);
    int (*audit)(struct sql *db, struct strbuf *out, struct aq_error *err);
    /* The log of commits that the file lacks, as of the last commit. */
    size_t (*log_bytes)(const struct sql *db);
    /* Write them to the file, as far as readers let it; beside other connections. */
    int (*checkpoint)(struct sql *db, struct aq_error *err);
    /* A copy in a new file (mode 0600); 'pace' may be NULL. Only of files. */
    int (*backup)(struct sql *db, const char *path, struct pace *pace, struct aq_error *err);

    int (*prepare)(struct sql *db, const char *text, enum sql_use use, struct sql_stmt **ret,
                   struct aq_error *err);
    void (*finish)(struct sql_stmt *q);
    int (*put_int)(struct sql_stmt *q, int at, int64_t value);
    int (*put_text)(struct sql_stmt *q, int at, const char *text);
    int (*put_blob)(struct sql_stmt *q, int at, const void *bytes, size_t len);
    int (*step)(struct sql_stmt *q, struct aq_error *err); /* 1 row, 0 end */
    int (*queue)(struct sql_stmt *q, struct aq_error *err);
    int (*queue_one)(struct sql_stmt *q, sql_refuse_fn refuse, const void *of,
                     struct aq_error *err);
    int (*settle)(struct sql *db, struct aq_error *err);
    void (*reset)(struct sql_stmt *q);
    int (*changes)(struct sql_stmt *q); /* by the last step */
    int64_t (*get_int)(struct sql_stmt *q, int at);
    const char *(*get_text)(struct sql_stmt *q, int at);
    const void *(*get_blob)(struct sql_stmt *q, int at, size_t *ret_len);
    bool (*is_null)(struct sql_stmt *q, int at);
};

extern const struct sql_ops sql_sqlite;

/* Does it name a server, not a file? "postgresql:" or "postgres:" and more. */
bool sql_is_uri(const char *where);

/* The engine of either; -ENOENT if the module for it is not installed. */
int sql_find_engine(const char *where, const struct sql_ops **ret, struct aq_error *err);

/* That of servers, from its module. */
int sql_load_postgres(const struct sql_ops **ret, struct aq_error *err);

/* What every engine's connection and statement begin with. */
struct sql {
    const struct sql_ops *ops;
    struct map cache; /* address of a statement's text, or of another key -> struct sql_stmt */
    struct map built; /* text -> struct sql_stmt: of sql_prepare_built() */
    uint64_t built_uses;
    bool was_refused; /* the last error was for what one statement wanted, not the engine's own */
};

struct sql_stmt {
    struct sql *db;
    int puts, gets; /* parameters put, columns got so far */
    bool is_cached, failed;
    bool is_busy;       /* of sql_prepare_built(): until sql_end() */
    uint64_t built_use; /* its last one */
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

/* The same of a text that is made for it, and kept under the address of something constant. The
 * text is only looked at unless the connection has the statement.
 */
bool sql_has_kept(const struct sql *db, const void *key);
int sql_prepare_as(struct sql *db, const void *key, const char *text, struct sql_stmt **ret,
                   struct aq_error *err);

/* A statement for this once; sql_end() releases it. */
int sql_prepare_once(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err);

/* The same for a text that is made of parts and may come again: kept while it is one of the last
 * few, as to parse it takes longer than to find a row by it. Not on a server, where what is kept
 * has a plan that does not look at the parameters.
 */
int sql_prepare_built(struct sql *db, const char *text, struct sql_stmt **ret,
                      struct aq_error *err);

/* The same as sql_prepare_once() for a query of very many rows, in a transaction; several may be
 * open at once.
 */
int sql_prepare_scan(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err);

/* A statement to be run many times by sql_run_kept(); sql_end() releases it. */
int sql_prepare_kept(struct sql *db, const char *text, struct sql_stmt **ret, struct aq_error *err);

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

/* The same without its end: ready for other parameters. */
int sql_run_kept(struct sql_stmt *q, struct aq_error *err);

/* The same for an INSERT, UPDATE or DELETE that is an error if it is refused or
 * changes no row; 'of' is borrowed until the transaction is settled.
 */
int sql_change_one(struct sql_stmt *q, sql_refuse_fn refuse, const void *of, struct aq_error *err);

/* How many rows it changed. */
int sql_change(struct sql_stmt *q, struct aq_error *err);

/* Wait for the end of all that was run: the first error, if there was one. */
int sql_settle(struct sql *db, struct aq_error *err);

/* sql_run() of a text without parameters that is a constant. */
int sql_run_constant(struct sql *db, const char *text, struct aq_error *err);

#endif
