/* SPDX-License-Identifier: Apache-2.0 */
/* session_event.h - what happened to sessions, in the order of the commits
 *
 * The writer gives each event of a session or kernel a number, which rises and is never used
 * again, and writes it in the transaction of the change itself. Numbers may be left out. The last
 * row is never removed: it says which number is next. For functions given to store_read().
 */
#ifndef AQ_STORE_SESSION_EVENT_H
#define AQ_STORE_SESSION_EVENT_H

#include "store/store.h"

/* One event of this database: after a restore another one may have its number, hardly its time
 * too. Zeroed = before the first.
 */
struct session_event_place {
    int64_t number, at_usec;
};

/* store_tx_fn: the last one; 'ret' is a struct session_event_place. */
int store_read_last_event(struct store_tx *tx, void *ret, struct aq_error *err);

struct session_event_row {
    struct session_event_place place;
    const char *name, *reason; /* "" = none */
    bool has_exit, is_kernel;
    bool is_removed; /* its session: nothing more is known */
    int exit_code;
    struct session session; /* as it is now: id, name, status, access_key, domain, project_id */
    struct kernel kernel;   /* id, role, index */
};

#define SESSION_EVENTS_AT_A_TIME 256

struct session_event_page {
    struct arena arena;
    struct session_event_row *rows;
    size_t count;
    bool is_known; /* the place is one of this database, and nothing after it was removed */
    bool is_old;   /* else: it is of before the first row, perhaps */
};

void session_event_page_free(struct session_event_page *page);
AQ_DEFINE_CLEANUP(struct session_event_page, session_event_page_free)

/* The events after 'after', as many as go at a time; less are all. If the place is not known and is
 * old either, these are none.
 */
int store_list_session_events(struct store_tx *tx, const struct session_event_place *after,
                              struct session_event_page **ret, struct aq_error *err);

#endif
