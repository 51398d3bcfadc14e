/* SPDX-License-Identifier: Apache-2.0 */
/* session_total.h - inside the store: how many sessions that have ended there are of each kind
 *
 * A kind is what SESSION_TOTAL_KIND names: what lists are filtered by, and sessions share. What
 * writes sessions that have ended, or removes them, changes the table session_totals with them.
 */
#ifndef AQ_STORE_SESSION_TOTAL_H
#define AQ_STORE_SESSION_TOTAL_H

#include "store/transaction.h"

#define SESSION_TOTAL_KIND                                                                  \
    "domain, project_id, user_id, access_key, resource_group, type, status, result, image," \
    " cluster_mode"

/* A statement up to the rows of sessions that are counted, and what comes behind their condition;
 * 'count' is what they count as, by kind.
 */
#define SESSION_TOTAL_ADD(count)                                    \
    "INSERT INTO session_totals (" SESSION_TOTAL_KIND ", sessions)" \
    " SELECT " SESSION_TOTAL_KIND ", " count " FROM sessions WHERE "
#define SESSION_TOTAL_END                                                          \
    " GROUP BY " SESSION_TOTAL_KIND                                                \
    " ON CONFLICT (user_id, status, result, type, access_key, project_id, domain," \
    " COALESCE('=' || resource_group, ''), COALESCE('=' || image, ''),"            \
    " COALESCE('=' || cluster_mode, ''))"                                          \
    " DO UPDATE SET sessions = session_totals.sessions + excluded.sessions"

/* The session has just ended. */
int session_total_add(struct store_tx *tx, const struct uuid *id, struct aq_error *err);

/* A line in 'out' if totals are not those of the sessions; how many lines. */
int session_total_audit(struct store_tx *tx, struct strbuf *out, struct aq_error *err);

#endif
