/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL: a connection to a server, and the table of the engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/postgres/postgres.h"
#include "store/postgres/statement.h"
#include "store/sql_module.h"

#define VERSION_MIN 150000

struct postgres *postgres_of(struct sql *sql)
{
    return (struct postgres *)sql;
}

static void postgres_close(struct sql *sql)
{
    struct postgres *pg = postgres_of(sql);

    PQfinish(pg->conn);
    free(pg->where);
    free(pg->session);
    free(pg->waiting);
    free(pg);
}

static void postgres_ignore_notice(void *data, const PGresult *result)
{
    (void)data;
    (void)result;
}

/* ---- scripts ---- */

static int postgres_run_text(struct postgres *pg, const char *text, struct aq_error *err)
{
    PGresult *result;
    int r;

    if (!PQexitPipelineMode(pg->conn))
        return postgres_fail(pg, NULL, err);
    result = PQexec(pg->conn, text);
    r = PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK
            ? 0
            : postgres_fail(pg, result, err);
    PQclear(result);
    if (!PQenterPipelineMode(pg->conn) && r == 0)
        r = postgres_fail(pg, NULL, err);
    return r;
}

static int postgres_run_script(struct sql *sql, const char *script, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = postgres_translate_script(script);
    struct postgres *pg = postgres_of(sql);
    int r = postgres_settle(pg, err);

    return r < 0 ? r : postgres_run_text(pg, text, err);
}

/* ---- connecting ---- */

/* Seconds to connect to a host, milliseconds for a server's host to acknowledge what was sent. A
 * manager that leads and its standbys wait equally long, and then ask the next host.
 */
#define CONNECT_SEC "5"
#define CONNECT_SEC_MANAGER "2"
#define ACKNOWLEDGE_MSEC "20000"
#define ACKNOWLEDGE_MSEC_MANAGER "4000"
#define SET_UP                                                                                 \
    "SET client_min_messages = error; SET standard_conforming_strings = on;"                   \
    " SET bytea_output = hex; SET tcp_keepalives_idle = 20; SET tcp_keepalives_interval = 10;" \
    " SET tcp_keepalives_count = 3; SET idle_in_transaction_session_timeout = 0;"              \
    " SET statement_timeout = 0; SET lock_timeout = %u"

/* What stands before the URI may be set by it. */
static PGconn *postgres_connect(const struct postgres *pg)
{
    static const char *const names[] = {
        "connect_timeout",     "tcp_user_timeout", "dbname",
        "application_name",    "client_encoding",  "keepalives_idle",
        "keepalives_interval", "keepalives_count", NULL
    };
    bool is_manager = pg->session != NULL;
    const char *const values[] = { is_manager ? CONNECT_SEC_MANAGER : CONNECT_SEC,
                                   is_manager ? ACKNOWLEDGE_MSEC_MANAGER : ACKNOWLEDGE_MSEC,
                                   pg->where,
                                   is_manager ? pg->session : "aliquot",
                                   "UTF8",
                                   "20",
                                   "10",
                                   "3",
                                   NULL };

    return PQconnectdbParams(names, values, 1);
}

static int postgres_check_server(struct postgres *pg, struct aq_error *err)
{
    const char *encoding;

    if (PQserverVersion(pg->conn) < VERSION_MIN)
        return aq_fail(err, EPROTONOSUPPORT,
                       "the database server is PostgreSQL %d; use 15 or later",
                       PQserverVersion(pg->conn) / 10000);
    encoding = PQparameterStatus(pg->conn, "server_encoding");
    if (!encoding || strcmp(encoding, "UTF8") != 0)
        return aq_fail(err, EINVAL,
                       "the database's encoding is %s; make one with createdb --encoding UTF8 "
                       "--template template0",
                       encoding ? encoding : "unknown");
    return 0;
}

static int postgres_set_up(struct postgres *pg, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *set_up = aq_format(
        SET_UP "%s%s", pg->lock_msec,
        pg->is_foreign ? "" : "; SET jit = off", /* older servers have none */
        pg->read_only ? "; SET default_transaction_read_only = on" : "");
    PGresult *result;
    int r = 0;

    if (PQstatus(pg->conn) != CONNECTION_OK)
        return postgres_fail(pg, NULL, err);
    (void)PQsetNoticeReceiver(pg->conn, postgres_ignore_notice, NULL);
    if (!pg->is_foreign && (r = postgres_check_server(pg, err)) < 0)
        return r;
    result = PQexec(pg->conn, set_up);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        r = postgres_fail(pg, result, err);
    PQclear(result);
    if (r == 0 && !PQenterPipelineMode(pg->conn))
        r = postgres_fail(pg, NULL, err);
    return r;
}

static bool postgres_is_lost(const struct sql *sql)
{
    const struct postgres *pg = (const struct postgres *)sql;

    return pg->is_broken || PQstatus(pg->conn) != CONNECTION_OK;
}

static int postgres_connect_again(struct sql *sql, struct aq_error *err)
{
    struct postgres *pg = postgres_of(sql);

    if (!postgres_is_lost(sql))
        return 0;
    postgres_forget(pg);
    pg->is_broken = false;
    PQfinish(pg->conn);
    pg->conn = postgres_connect(pg);
    pg->generation++;
    return pg->conn ? postgres_set_up(pg, err) : aq_fail_oom(err);
}

static int postgres_open(const struct sql_conf *conf, struct sql **ret, struct aq_error *err)
{
    struct postgres *pg = aq_alloc(sizeof(*pg));
    int r;

    pg->where = aq_strdup(conf->where);
    pg->session = conf->session ? aq_strdup(conf->session) : NULL;
    pg->lock_msec = conf->lock_msec;
    pg->answer_msec = conf->answer_msec;
    pg->read_only = conf->read_only;
    pg->is_foreign = conf->is_foreign;
    pg->generation = 1;
    pg->conn = postgres_connect(pg);
    r = pg->conn ? postgres_set_up(pg, err) : aq_fail_oom(err);
    if (r < 0)
        postgres_close(&pg->sql);
    else
        *ret = &pg->sql;
    return r;
}

static bool postgres_is_in_transaction(struct sql *sql)
{
    struct postgres *pg = postgres_of(sql);

    (void)postgres_settle(pg, NULL);
    return !postgres_is_lost(sql)
           && (PQtransactionStatus(pg->conn) == PQTRANS_INTRANS
               || PQtransactionStatus(pg->conn) == PQTRANS_INERROR);
}

static int postgres_settle_all(struct sql *sql, struct aq_error *err)
{
    return postgres_settle(postgres_of(sql), err);
}

static int postgres_is_empty(struct sql *sql, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(sql, "SELECT to_regclass('schema_migrations') IS NULL", &q, err);

    if (r < 0 || (r = sql_step(q, err)) <= 0)
        return r;
    return sql_get_int(q) != 0;
}

/* ---- care: the server's own ---- */

static int postgres_list_risks(struct sql *sql, struct strbuf *out, struct aq_error *err)
{
    static const struct {
        const char *query, *risk;
    } risks[] = {
        { "SELECT current_setting('fsync') = 'off'",
          "fsync is off: a crash of the server's machine loses what was acknowledged" },
        { "SELECT current_setting('synchronous_commit') = 'off'",
          "synchronous_commit is off: a crash of the server loses what was acknowledged" },
        { "SELECT current_setting('full_page_writes') = 'off'",
          "full_page_writes is off: a crash of the server's machine can damage the database" },
        { "SELECT COUNT(*) > 0 FROM pg_stat_replication WHERE sync_state = 'async'",
          "a standby is asynchronous: should it take over, what was acknowledged last is lost" },
    };

    for (size_t i = 0; i < AQ_COUNT(risks); i++) {
        int64_t is_so = 0;
        int r = postgres_ask(sql, risks[i].query, NULL, &is_so, err);

        if (r < 0)
            return r;
        if (is_so)
            strbuf_addf(out, "%s\n", risks[i].risk);
    }
    return 0;
}

static int postgres_audit(struct sql *sql, struct strbuf *out, struct aq_error *err)
{
    (void)sql;
    (void)out;
    (void)err;
    return 0;
}

static size_t postgres_log_bytes(const struct sql *sql)
{
    (void)sql;
    return 0;
}

static int postgres_checkpoint(struct sql *sql, struct aq_error *err)
{
    (void)sql;
    (void)err;
    return 0;
}

static const struct sql_ops postgres_ops = {
    .begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    .begin_write = "BEGIN",
    .describe = "SELECT 'PostgreSQL ' || current_setting('server_version'),"
                " pg_database_size(current_database())",
    .prefer_indexes = "SET LOCAL enable_seqscan = off",
    .prefer_any = "SET LOCAL enable_seqscan TO DEFAULT",
    .avoid_sorts = "SET LOCAL enable_sort = off",
    .allow_sorts = "SET LOCAL enable_sort TO DEFAULT",
    .list_columns = "SELECT column_name, CASE data_type WHEN 'bigint' THEN 'INTEGER'"
                    " WHEN 'bytea' THEN 'BLOB' ELSE 'TEXT' END FROM information_schema.columns"
                    " WHERE table_schema = current_schema() AND table_name = ?"
                    " ORDER BY ordinal_position",
    .is_server = true,
    .open = postgres_open,
    .close = postgres_close,
    .run_script = postgres_run_script,
    .is_in_transaction = postgres_is_in_transaction,
    .is_empty = postgres_is_empty,
    .is_lost = postgres_is_lost,
    .connect_again = postgres_connect_again,
    .check_pooler = postgres_check_pooler,
    .lock = postgres_lock,
    .unlock = postgres_unlock,
    .end_lock_holder = postgres_end_lock_holder,
    .count_protected_sessions = postgres_count_protected_sessions,
    .count_working_sessions = postgres_count_working_sessions,
    .count_sessions = postgres_count_sessions,
    .end_idle_sessions = postgres_end_idle_sessions,
    .end_sessions = postgres_end_sessions,
    .holder_has_sessions = POSTGRES_HOLDER_HAS_SESSIONS,
    .holder_is_working = POSTGRES_HOLDER_IS_WORKING,
    .holder_clock = POSTGRES_HOLDER_CLOCK,
    .list_risks = postgres_list_risks,
    .audit = postgres_audit,
    .log_bytes = postgres_log_bytes,
    .checkpoint = postgres_checkpoint,
    .prepare = postgres_statement_prepare,
    .finish = postgres_statement_finish,
    .put_int = postgres_statement_put_int,
    .put_text = postgres_statement_put_text,
    .put_blob = postgres_statement_put_blob,
    .step = postgres_statement_step,
    .queue = postgres_statement_queue,
    .queue_one = postgres_statement_queue_one,
    .settle = postgres_settle_all,
    .reset = postgres_statement_reset,
    .changes = postgres_statement_changes,
    .get_int = postgres_statement_get_int,
    .get_text = postgres_statement_get_text,
    .get_blob = postgres_statement_get_blob,
    .is_null = postgres_statement_is_null,
};

const struct sql_module aq_sql_module = { .version = ALIQUOT_VERSION, .ops = &postgres_ops };
