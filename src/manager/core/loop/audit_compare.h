/* SPDX-License-Identifier: Apache-2.0 */
/* audit_compare.h - does memory show what a row says?
 *
 * Of use only in the callback of the store_write() that read the row: commits before it have been
 * applied to memory then, later ones have not.
 */
#ifndef AQ_MANAGER_CORE_AUDIT_COMPARE_H
#define AQ_MANAGER_CORE_AUDIT_COMPARE_H

#include "base/strbuf.h"
#include "model/event.h"

struct core;

struct audit_findings {
    struct strbuf text; /* a line each */
    int count;
};

void audit_find(struct audit_findings *findings, const char *fmt, ...) AQ_PRINTF(2, 3);

/* An event of store_load_registry() or store_load_sessions(): each difference is a finding. */
void audit_compare_event(const struct core *core, const struct event *e,
                         struct audit_findings *findings);

#endif
