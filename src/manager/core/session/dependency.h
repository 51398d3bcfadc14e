/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.h - sessions that wait for a status or an end of others: model/dependency.h */
#ifndef AQ_MANAGER_CORE_SESSION_DEPENDENCY_H
#define AQ_MANAGER_CORE_SESSION_DEPENDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/uuid.h"

struct aq_error;
struct array_entry;
struct array_set;
struct core;
struct event_array_change;
struct session;
struct session_dependency;
struct session_entry;
struct session_request;
struct store_tx;

/* ---- dependency.c: those that wait ---- */

/* Those that wait for the same: a value of core.dependents. */
struct dependents {
    struct session_entry **items;
    size_t count, cap;
};

/* Key of core.dependents: an id, and of an array also the element. */
struct dependency_key {
    unsigned char bytes[sizeof(struct uuid) + sizeof(int64_t)];
    size_t len;
};
struct dependency_key dependency_key_of(const struct session_dependency *d);

/* Note whom a new session waits for. */
void dependency_watch(struct core *core, struct session_entry *l);

/* Look again at those that wait for it: it runs, or has ended. */
void dependency_started(struct core *core, struct session_entry *l);
void dependency_ended(struct core *core, struct session_entry *l);

/* Look again at those that wait for all elements of the array, whose counts have changed. */
void dependency_array_changed(struct core *core, struct array_entry *entry);

/* Look again at those that wait for elements that 'change', not applied yet, cancels before they
 * are made.
 */
void dependency_array_shrinks(struct core *core, const struct array_entry *entry,
                              const struct event_array_change *change);

/* It leaves memory. */
void dependency_forget(struct core *core, struct session_entry *l);

/* All of it, at the end. */
void dependency_free(struct core *core);

/* ---- dependency_request.c: those that a request or an array names ---- */

/* Dependencies that have ended or do not exist, as in a request; owned. */
struct dependency_missing {
    char **names;
    size_t count;
};

/* Add to 's' those of 'req' that are in memory; the others are in 'ret', which was zeroed and is
 * done with dependency_missing_done() in any case. 'indices': of an array to be created; empty = one
 * session, NULL = either. -EINVAL, -ENOENT.
 */
int dependency_resolve(const struct core *core, const struct session_request *req,
                       const struct array_set *indices, struct session *s,
                       struct dependency_missing *ret, struct aq_error *err) AQ_MUST_CHECK;

/* The same for the element 's' of an array. Those of the whole array that have ended are in 'ret'
 * only if 'is_first', as they are the same for each element.
 */
void dependency_resolve_element(const struct core *core, const struct array_entry *entry,
                                bool is_first, struct session *s, struct dependency_missing *ret);

/* On a thread of the store: add the others. -ENOENT; -EINVAL if one can never be met. 'indices' as
 * above.
 */
int dependency_read_missing(struct store_tx *tx, const struct array_set *indices, struct session *s,
                            const struct dependency_missing *missing,
                            struct aq_error *err) AQ_MUST_CHECK;

void dependency_missing_done(struct dependency_missing *missing);

/* An array cannot go on, as what all of its elements wait for has failed: 's' is one of them. */
bool dependency_fails_array(const struct array_entry *entry, const struct session *s);

#endif
