/* SPDX-License-Identifier: Apache-2.0 */
/* session_graph.c - a session, what it waits for or waited for, what these do, and so on */
#include "store/session_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/array_dependency.h"
#include "store/transaction.h"

/* The index of the node with this id, added if there is none yet. 'element' as of a dependency on an
 * array; NULL = it is a session. -E2BIG.
 */
static int session_graph_get(struct session_graph *graph, const struct uuid *id,
                             const int64_t *element, struct aq_error *err)
{
    for (size_t i = 0; i < graph->count; i++)
        if (uuid_equals(&graph->nodes[i].id, id) && graph->nodes[i].is_array == (element != NULL)
            && (!element || graph->nodes[i].element == *element))
            return (int)i;
    if (graph->count == SESSION_GRAPH_MAX)
        return aq_fail(err, E2BIG, "the session depends, directly or not, on more than %d others",
                       SESSION_GRAPH_MAX - 1);
    graph->nodes[graph->count].id = *id;
    graph->nodes[graph->count].is_array = element != NULL;
    graph->nodes[graph->count].element = element ? *element : 0;
    return (int)graph->count++;
}

static int session_graph_read_row(struct store_tx *tx, const char *id, struct session_graph *graph,
                                  struct session_graph_node *node, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = graph->arena };
    int r = sql_prepare(tx->db, "SELECT name, status, status_changed_at FROM sessions WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, id);
    if ((r = sql_step(q, err)) <= 0)
        return r < 0 ? r : aq_fail(err, ENOENT, "there is no session %s", id);
    row.q = q;
    node->name = row_text(&row);
    node->status = row_text(&row);
    node->changed_usec = sql_get_int(q);
    return row_check(&row, "sessions", err);
}

/* An element that has got a session since it was named is that session, under the array's id. */
static int session_graph_read_element(struct store_tx *tx, const char *id,
                                      struct session_graph *graph, struct session_graph_node *node,
                                      struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = graph->arena };
    int r = sql_prepare(tx->db,
                        "SELECT status, status_changed_at FROM sessions WHERE array_id = ?"
                        " AND array_index = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, id);
    sql_put_int(q, node->element);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    row.q = q;
    node->status = row_text(&row);
    node->changed_usec = sql_get_int(q);
    return row_check(&row, "sessions", err);
}

static int session_graph_link(struct session_graph *graph, struct session_graph_node *node,
                              const struct uuid *id, const int64_t *element, struct aq_error *err)
{
    int index = session_graph_get(graph, id, element, err);
    size_t at = (size_t)index;

    if (index < 0)
        return index;
    arena_append(graph->arena, &node->dependencies, &node->dependency_count, &at, sizeof(at));
    return 0;
}

/* What an array waits for; of an element, the element of the same index where that is meant. */
static int session_graph_link_array(struct session_graph *graph, struct session_graph_node *node,
                                    const char *depends_on, struct aq_error *err)
{
    struct session_dependency *all = NULL;
    size_t count = 0;
    int r = array_parse_dependencies(depends_on, &all, &count);

    if (r == -EUCLEAN)
        r = aq_fail(err, EUCLEAN, "the row of array '%.60s' has invalid dependencies: '%.100s'",
                    node->name, depends_on);
    for (size_t i = 0; r == 0 && i < count; i++) {
        int64_t element = all[i].element;

        if (all[i].condition == DEPENDENCY_CORRESPONDING)
            element = node->element;
        r = session_graph_link(graph, node, &all[i].id, all[i].is_array ? &element : NULL, err);
    }
    free(all);
    return r;
}

/* An array, or an element that had no session when it was named. */
static int session_graph_read_array(struct store_tx *tx, const char *id,
                                    struct session_graph *graph, struct session_graph_node *node,
                                    struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = graph->arena };
    const char *depends_on;
    int r = sql_prepare(tx->db,
                        "SELECT name, CASE WHEN ended_at IS NULL AND made = 0 THEN 'PENDING'"
                        " WHEN ended_at IS NULL THEN 'RUNNING' WHEN cancelled_at IS NULL THEN"
                        " 'TERMINATED' ELSE 'CANCELLED' END, COALESCE(ended_at, created_at),"
                        " depends_on FROM arrays WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, id);
    if ((r = sql_step(q, err)) <= 0)
        return r < 0 ? r : aq_fail(err, ENOENT, "there is no array %s", id);
    row.q = q;
    node->name = row_text(&row);
    node->status = row_text(&row);
    node->changed_usec = sql_get_int(q);
    depends_on = row_text(&row);
    if ((r = row_check(&row, "arrays", err)) < 0)
        return r;
    if (node->element != DEPENDENCY_ALL) {
        AQ_CLEANUP(aq_freep) char *name = aq_format("%s[%" PRId64 "]", node->name, node->element);

        node->name = arena_strdup(graph->arena, name);
        if (strcmp(node->status, "RUNNING") == 0)
            node->status = "PENDING"; /* unless it has a session */
        r = session_graph_read_element(tx, id, graph, node, err);
    }
    return r < 0 ? r : session_graph_link_array(graph, node, depends_on, err);
}

/* Whom it waits for: nodes of their own, to be read later. */
static int session_graph_read_dependencies(struct store_tx *tx, const char *id,
                                           struct session_graph *graph,
                                           struct session_graph_node *node, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT d.depends_on, NULL AS element FROM session_dependencies d"
                        " JOIN sessions s ON s.seq = d.session_seq WHERE s.id = ?1"
                        " UNION ALL SELECT d.array_id, d.element FROM array_dependencies d"
                        " JOIN sessions s ON s.seq = d.session_seq WHERE s.id = ?1"
                        " ORDER BY 1, 2",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, id);
    while ((r = sql_step(q, err)) > 0) {
        struct uuid other = sql_get_uuid(q);
        bool is_array = !sql_get_is_null(q);
        int64_t element = sql_get_int(q);

        if ((r = session_graph_link(graph, node, &other, is_array ? &element : NULL, err)) < 0)
            return r;
    }
    return AQ_MIN(r, 0);
}

int session_graph_read(struct store_tx *tx, const struct uuid *id, struct session_graph *ret,
                       struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    int r;

    ret->count = 0;
    ret->nodes = arena_array(ret->arena, SESSION_GRAPH_MAX, sizeof(*ret->nodes));
    r = session_graph_get(ret, id, NULL, err);
    for (size_t i = 0; r >= 0 && i < ret->count; i++) {
        struct session_graph_node *node = &ret->nodes[i];

        (void)uuid_format(&node->id, text);
        r = node->is_array ? session_graph_read_array(tx, text, ret, node, err)
                           : session_graph_read_row(tx, text, ret, node, err);
        if (r >= 0 && !node->is_array)
            r = session_graph_read_dependencies(tx, text, ret, node, err);
    }
    return AQ_MIN(r, 0);
}

int session_graph_read_waits(struct store_tx *tx, const struct uuid *id, struct arena *arena,
                             struct str_list *ret, size_t *ret_ended, struct aq_error *err)
{
    static const char sql[] =
        "SELECT d.condition || ':' || d.depends_on AS wait,"
        " CASE WHEN o.id IS NULL THEN 1 ELSE o.terminated_at END AS ended"
        " FROM session_dependencies d JOIN sessions s ON s.seq = d.session_seq"
        " LEFT JOIN sessions o ON o.id = d.depends_on WHERE s.id = ?1"
        " UNION ALL SELECT d.condition || ':' || d.array_id"
        " || CASE WHEN d.element < 0 THEN '' ELSE '[' || d.element || ']' END, a.ended_at"
        " FROM array_dependencies d JOIN sessions s ON s.seq = d.session_seq"
        " JOIN arrays a ON a.id = d.array_id WHERE s.id = ?1 ORDER BY 1";
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = arena };
    char text[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db, sql, &q, err);

    *ret = (struct str_list){ 0 };
    *ret_ended = 0;
    if (r < 0)
        return r;
    sql_put_text(q, uuid_format(id, text));
    row.q = q;
    while ((r = sql_step(q, err)) > 0) {
        const char *wait = row_text(&row);

        if (sql_get_int(q))
            ++*ret_ended;
        else
            arena_append(arena, &ret->items, &ret->count, &wait, sizeof(wait));
    }
    return r < 0 ? r : row_check(&row, "session_dependencies", err);
}
