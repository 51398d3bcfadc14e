/* SPDX-License-Identifier: Apache-2.0 */
/* session_audit.h - entries of the audit log about sessions */
#ifndef AQ_MANAGER_CORE_SESSION_SESSION_AUDIT_H
#define AQ_MANAGER_CORE_SESSION_SESSION_AUDIT_H

#include "model/audit.h"
#include "model/slot.h"

struct core;

/* A change of the session, which is borrowed; its id is written to 'id'. */
struct audit_change session_audit_change(const struct session *s, const char *action,
                                         char id[UUID_TEXT_MAX]);

/* Add the entry of a new session to the batch that makes it. Nothing if 'by' is NULL. */
void session_audit_created(const struct core *core, struct event_batch *batch,
                           const struct session *s, const char *action, const struct audit_who *by);

/* {"resources": {...}} */
void session_audit_write_slots(const struct core *core, const struct slots *slots,
                               struct strbuf *out);

#endif
