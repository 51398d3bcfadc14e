/* SPDX-License-Identifier: Apache-2.0 */
/* session_graph.h - a session, what it waits for or waited for, what these do, and so on
 *
 * For functions given to store_read().
 */
#ifndef AQ_STORE_SESSION_GRAPH_H
#define AQ_STORE_SESSION_GRAPH_H

#include "base/arena.h"
#include "base/lists.h"
#include "base/uuid.h"
#include "store/store.h"

struct session_graph_node {
    struct uuid id;
    bool is_array;      /* an array, or an element that had no session when it was named */
    int64_t element;    /* of an array, as in struct session_dependency */
    const char *name;   /* "NAME[7]" of an element */
    const char *status; /* name of session_status */
    int64_t changed_usec;
    size_t *dependencies; /* indices of nodes */
    size_t dependency_count;
};

#define SESSION_GRAPH_MAX 300 /* nodes */

/* The nodes are in the arena, the session itself is the first. */
struct session_graph {
    struct arena *arena;
    struct session_graph_node *nodes;
    size_t count;
};

/* Into ret, whose arena the caller gives. -ENOENT; -E2BIG if there are
 * more than SESSION_GRAPH_MAX.
 */
int session_graph_read(struct store_tx *tx, const struct uuid *id, struct session_graph *ret,
                       struct aq_error *err);

/* The conditions that a session waited for and whose sessions and arrays have not ended, as
 * "CONDITION:ID" or "CONDITION:ID[INDEX]", in the arena; *ret_ended counts the others.
 */
int session_graph_read_waits(struct store_tx *tx, const struct uuid *id, struct arena *arena,
                             struct str_list *ret, size_t *ret_ended, struct aq_error *err);

#endif
