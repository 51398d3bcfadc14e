/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's errors are to us, by their codes.
 *
 * https://www.postgresql.org/docs/15/errcodes-appendix.html
 */
#include "store/postgres/postgres.h"

#include <errno.h>
#include <string.h>

/* By the first characters of the code; the first that fits. */
static const struct {
    const char *begin;
    int code;
    bool is_refusal; /* of what the statement wants: another one may do */
    const char *remedy;
} failures[] = {
    { "22012", ENODATA, true, NULL }, /* see postgres.h */
    { "23505", EEXIST, true, NULL },
    { "23503", ENOENT, true, NULL },
    { "23", EINVAL, true, NULL },
    { "22", EINVAL, true, NULL },
    { "25006", EROFS, false, "let this user write, and name the primary server" },
    { "28", EACCES, false, "check user, password and pg_hba.conf" },
    { "3D", ENOENT, false, "make the database: createdb" },
    { "42501", EACCES, false, "make the user the owner of the database" },
    { "40", EBUSY, false, "try again" },
    { "53100", ENOSPC, false, "free space on the server's disk and try again" },
    { "53300", EBUSY, false, "raise the server's max_connections" },
    { "55", EBUSY, false, "try again" },
    { "57P", EHOSTDOWN, false, NULL },
    { "08", EHOSTDOWN, false, NULL },
    { "XX", EUCLEAN, false, "look into the server's log and restore a backup" },
};

/* Messages of libpq have several lines. */
static int postgres_first_line(const char *text)
{
    return (int)strcspn(text, "\n");
}

int postgres_fail_connection(struct postgres *pg, const char *text, struct aq_error *err)
{
    pg->sql.was_refused = false;
    return aq_fail(err, EHOSTDOWN, "the database server cannot be reached: %.*s",
                   postgres_first_line(text), text);
}

int postgres_fail(struct postgres *pg, const PGresult *result, struct aq_error *err)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *said = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *text = said ? said : "";

    if (PQstatus(pg->conn) != CONNECTION_OK || !state)
        return postgres_fail_connection(pg, PQerrorMessage(pg->conn), err);
    for (size_t i = 0; i < AQ_COUNT(failures); i++)
        if (strncmp(state, failures[i].begin, strlen(failures[i].begin)) == 0) {
            pg->sql.was_refused = failures[i].is_refusal;
            if (failures[i].code == EHOSTDOWN) {
                pg->is_broken = true;
                return postgres_fail_connection(pg, text, err);
            }
            return failures[i].remedy
                       ? aq_fail(err, failures[i].code, "database: %s (%s); %s", text, state,
                                 failures[i].remedy)
                       : aq_fail(err, failures[i].code, "database: %s (%s)", text, state);
        }
    pg->sql.was_refused = false;
    return aq_fail(err, EIO, "database: %s (%s)", text, state);
}
