/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.h - sessions that wait for a status or an end of others: model/dependency.h */
#ifndef AQ_MANAGER_CORE_SESSION_DEPENDENCY_H
#define AQ_MANAGER_CORE_SESSION_DEPENDENCY_H

#include <stddef.h>

#include "base/cleanup.h"

struct aq_error;
struct core;
struct session;
struct session_entry;
struct session_request;
struct store_tx;

/* Note whom a new session waits for. */
void dependency_watch(struct core *core, struct session_entry *l);

/* Look again at those that wait for it: it runs, or has ended. */
void dependency_started(struct core *core, struct session_entry *l);
void dependency_ended(struct core *core, struct session_entry *l);

/* It leaves memory. */
void dependency_forget(struct core *core, struct session_entry *l);

/* All of it, at the end. */
void dependency_free(struct core *core);

/* Dependencies of a request that are not in memory, as they have ended or do not exist: ids or names, owned. */
struct dependency_missing {
    char **names;
    size_t count;
};

/* Add to 's' those of 'req' that are in memory; the others are in 'ret', which was zeroed and is
 * done with dependency_missing_done() in any case. -EINVAL.
 */
int dependency_resolve(const struct core *core, const struct session_request *req,
                       struct session *s, struct dependency_missing *ret,
                       struct aq_error *err) AQ_MUST_CHECK;

/* On a thread of the store: add the others. -ENOENT; -EINVAL if one can never be met. */
int dependency_read_missing(struct store_tx *tx, struct session *s,
                            const struct dependency_missing *missing,
                            struct aq_error *err) AQ_MUST_CHECK;

void dependency_missing_done(struct dependency_missing *missing);

#endif
