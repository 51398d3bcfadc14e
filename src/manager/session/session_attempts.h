/* SPDX-License-Identifier: Apache-2.0 */
/* session_attempts.h - how often a batch session was run, and how often it may be, as JSON */
#ifndef AQ_MANAGER_SESSION_SESSION_ATTEMPTS_H
#define AQ_MANAGER_SESSION_SESSION_ATTEMPTS_H

#include "base/jsonw.h"
#include "store/query.h"

struct core;

/* {"limit", "on", "delay_sec", "factor", "used", "next_at"}; null for sessions without retries.
 * 'session' has its spec.
 */
void session_attempts_write_retry(const struct session *session, struct jsonw *w);

/* Usage of the current or last attempt, in the format of session_summary_write(); null if the
 * program did not run, or if the session is not of type batch.
 */
void session_attempts_write_summary(const struct core *core, const struct session_row *row,
                                    struct jsonw *w);

/* Amounts that a kernel should request next time, of the summary; 0 = unknown. */
struct session_suggestion {
    int64_t cpu, mem_bytes; /* cores */
};
struct session_suggestion session_attempts_suggest(const struct core *core,
                                                   const struct session_row *row);

/* A list of {"attempt", "started_at", "ended_at", "reason", "exit_code", "agent", "text", "used"}, oldest
 * first: those in 'row', which has its runs and kernels, and the one that runs or was the last.
 * Empty for a session that did not run.
 */
void session_attempts_write(const struct session_row *row, struct jsonw *w);

#endif
