/* SPDX-License-Identifier: Apache-2.0 */
/* pending_reason.h - why a session waits, in words and as JSON */
#ifndef AQ_MANAGER_CORE_SCHEDULING_PENDING_REASON_H
#define AQ_MANAGER_CORE_SCHEDULING_PENDING_REASON_H

struct aq_error;
struct core;
struct session_entry;
struct strbuf;

/* As core_explain(), without the start estimate: what may be kept with the session. */
int pending_reason_write(struct core *core, struct session_entry *l, struct strbuf *text,
                         struct strbuf *json, struct aq_error *err);

/* All that core_explain() says, about a session that is not made. */
int pending_reason_what_if(struct core *core, struct session_entry *l, struct strbuf *text,
                           struct strbuf *json, struct aq_error *err);

#endif
