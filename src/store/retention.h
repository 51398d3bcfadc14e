/* SPDX-License-Identifier: Apache-2.0 */
/* retention.h - removing rows that are older than anybody wants them
 *
 * For functions given to store_write() and store_read(). Rows go a piece at a
 * time: a piece is one transaction of bounded size, and whatever is killed
 * between two of them is continued by the next one. What has to go with a row
 * goes in its transaction.
 */
#ifndef AQ_STORE_RETENTION_H
#define AQ_STORE_RETENTION_H

#include "store/store.h"

enum retention_entity {
    RETENTION_SESSIONS,      /* that have ended, with all that hangs on them */
    RETENTION_HISTORY,       /* status changes of sessions that have ended */
    RETENTION_USAGE,         /* what removed sessions held */
    RETENTION_AGENT_HISTORY, /* status changes of agents */
    RETENTION_SERIES,        /* of statistics */
    RETENTION_AUDIT_LOG,
    RETENTION_ERROR_LOGS, /* that clients reported */
    RETENTION_EVENTS,     /* of sessions, for clients that missed some */
    RETENTION_ENTITY_COUNT,
};

/* "sessions", "agent-history": as settings and users call it. */
const char *retention_entity_name(enum retention_entity entity);
int retention_entity_parse(const char *text, enum retention_entity *ret);

/* Of one transaction, ledger rows of the kernels excepted. */
#define RETENTION_SESSIONS_AT_A_TIME 100
#define RETENTION_KERNELS_AT_A_TIME 200 /* but of one session at least */
#define RETENTION_ROWS_AT_A_TIME 500

/* Sessions up to this one, in the order of their ends, were looked at; of the audit log entries
 * up to the number 'row'.
 */
struct retention_place {
    int64_t at_usec, row;
};

struct retention_piece {
    enum retention_entity entity;
    int64_t before_usec;  /* what ended or is dated before that goes; 0 = nothing by age */
    int64_t started_usec; /* of the run, of which this is a piece */
    int64_t now_usec;
    struct retention_place place; /* zeroed at first, then where it goes on; not of every entity */
    int64_t removed;              /* out: sessions, or rows of the others */
    bool is_last;                 /* out: there is no more */
};

/* Remove a piece and note it in the entity's last run.
 *
 * A session goes if it has ended before, no live session depends on it, nothing
 * of it is held, and it is not the latest one, whose row says which number is
 * next. What it held is kept as removed usage, for fair share and accounting.
 */
int retention_remove(struct store_tx *tx, struct retention_piece *piece, struct aq_error *err);

struct retention_report {
    int64_t rows;                              /* sessions: those that have ended */
    int64_t removable;                         /* would go */
    int64_t oldest_usec;                       /* 0 = there are none */
    int64_t started_usec, ended_usec, removed; /* the last run; started 0 = there was none,
                                                  ended 0 = it is not at its end, or was cut off */
};

/* With 'count' rows are counted, which reads many of them; else only the last run is read. */
int retention_read(struct store_tx *tx, enum retention_entity entity, int64_t before_usec,
                   bool count, struct retention_report *ret, struct aq_error *err);

#endif
