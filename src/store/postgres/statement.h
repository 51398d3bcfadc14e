/* SPDX-License-Identifier: Apache-2.0 */
/* statement.h - the members of struct sql_ops that are about statements: see sql.h */
#ifndef AQ_STORE_POSTGRES_STATEMENT_H
#define AQ_STORE_POSTGRES_STATEMENT_H

#include "store/sql.h"

int postgres_statement_prepare(struct sql *db, const char *text, enum sql_use use,
                               struct sql_stmt **ret, struct aq_error *err);
void postgres_statement_finish(struct sql_stmt *stmt);
int postgres_statement_put_int(struct sql_stmt *stmt, int at, int64_t value);
int postgres_statement_put_text(struct sql_stmt *stmt, int at, const char *text);
int postgres_statement_put_blob(struct sql_stmt *stmt, int at, const void *bytes, size_t len);
int postgres_statement_step(struct sql_stmt *stmt, struct aq_error *err);
int postgres_statement_queue(struct sql_stmt *stmt, struct aq_error *err);
int postgres_statement_queue_one(struct sql_stmt *stmt, sql_refuse_fn refuse, const void *of,
                                 struct aq_error *err);
void postgres_statement_reset(struct sql_stmt *stmt);
int postgres_statement_changes(struct sql_stmt *stmt);
bool postgres_statement_is_null(struct sql_stmt *stmt, int at);
int64_t postgres_statement_get_int(struct sql_stmt *stmt, int at);
const char *postgres_statement_get_text(struct sql_stmt *stmt, int at);
const void *postgres_statement_get_blob(struct sql_stmt *stmt, int at, size_t *ret_len);

#endif
