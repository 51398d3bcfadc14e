/* SPDX-License-Identifier: Apache-2.0 */
/* pending_reason.h - why a session waits, in words and as JSON */
#ifndef AQ_MANAGER_CORE_SCHEDULING_PENDING_REASON_H
#define AQ_MANAGER_CORE_SCHEDULING_PENDING_REASON_H

#include <stddef.h>

struct aq_error;
struct core;
struct session_entry;
struct strbuf;

/* As core_explain(), without the start estimate: what may be kept with the session. */
int pending_reason_write(struct core *core, struct session_entry *l, struct strbuf *text,
                         struct strbuf *json, struct aq_error *err);

/* All that core_explain() says, about 'count' sessions like 'l' that are not made: of the first
 * that would not start now, else of the last. *ret_started is how many would.
 */
int pending_reason_what_if(struct core *core, struct session_entry *l, size_t count,
                           size_t *ret_started, struct strbuf *text, struct strbuf *json,
                           struct aq_error *err);

#endif
