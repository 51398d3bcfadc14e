/* SPDX-License-Identifier: Apache-2.0 */
/* live_text.h - the rows of the feed as text: nodes, sessions, what waits, arrays, runs
 *
 * Each function appends the members of an object without its braces, 'fixed' and 'measured' of
 * live_rows.h. Nobody's names are in a node's row: a part of a card says by a number that means
 * nothing elsewhere which session has it, and the row of a session that the reader may see has
 * the same number. On the loop's thread.
 */
#ifndef AQ_MANAGER_LIVE_LIVE_TEXT_H
#define AQ_MANAGER_LIVE_LIVE_TEXT_H

#include "base/strbuf.h"
#include "manager/core/core.h"
#include "manager/call/caller.h"
#include "manager/pipeline/pipeline.h"

void live_text_write_agent(const struct core *core, const struct agent *agent, struct strbuf *fixed,
                           struct strbuf *measured);

void live_text_write_session(const struct core *core, const struct session *s, struct strbuf *fixed,
                             struct strbuf *measured);

/* As in lists of arrays and of runs; nothing is measured apart. */
void live_text_write_array(const struct core *core, const struct core_array *array,
                           struct strbuf *fixed);
void live_text_write_run(const struct api *api, const struct uuid *id, struct strbuf *fixed);
void live_text_write_task(const struct pipeline_task_row *task, struct strbuf *fixed);

/* Of a PENDING session: why it waits; measured are its place and when it starts, which change with
 * others. */
void live_text_write_waiting(struct core *core, const struct session *s, struct strbuf *fixed,
                             struct strbuf *measured);

#endif
