/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of sessions with what their specs say. Runs on the store's threads, so that the loop
 * parses none.
 */
#include <errno.h>

#include "base/json_load.h"
#include "manager/gql/resolve.h"

/* A text, or an object as text; else 'otherwise'. NULL without memory, too. */
static int session_spec_copy(struct arena *arena, const json_t *member, const char *otherwise,
                             const char **ret)
{
    AQ_CLEANUP(aq_freep) char *text = json_is_object(member) ? json_dump_text(member, 0) : NULL;
    const char *found = text ? text : json_string_value(member);

    if (json_is_object(member) && !text)
        return -ENOMEM;
    *ret = found ? arena_strdup(arena, found) : otherwise;
    return found && !*ret ? -ENOMEM : 0;
}

static int session_spec_read_ports(struct arena *arena, const json_t *ports, struct gql_session *s)
{
    size_t count = json_array_size(ports);
    struct gql_value *items = arena_array(arena, count + 1, sizeof(*items));

    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        items[i] = gql_int(json_integer_value(json_array_get(ports, i)));
    s->ports = items;
    s->port_count = (uint32_t)count;
    return 0;
}

static int session_spec_read(struct arena *arena, struct gql_session *s)
{
    json_auto_t *spec = s->row.session.spec ? json_load_string(s->row.session.spec, 0) : NULL;
    int r = session_spec_copy(arena, json_object_get(spec, "architecture"), "x86_64",
                              &s->architecture);

    if (r == 0)
        r = session_spec_copy(arena, json_object_get(spec, "command"), NULL, &s->command);
    if (r == 0)
        r = session_spec_copy(arena, json_object_get(spec, "resource_opts"), "{}",
                              &s->resource_opts);
    return r < 0 ? r : session_spec_read_ports(arena, json_object_get(spec, "preopen_ports"), s);
}

/* The page's rows become struct gql_session. */
static int session_spec_read_all(struct store_page *page, struct aq_error *err)
{
    struct gql_session *sessions = arena_array(&page->arena, page->count + 1, sizeof(*sessions));

    for (size_t i = 0; sessions && i < page->count; i++) {
        sessions[i].row = page->sessions[i];
        if (session_spec_read(&page->arena, &sessions[i]) < 0)
            sessions = NULL;
    }
    if (!sessions)
        return aq_fail_field(err, EMSGSIZE, "limit",
                             "the rows asked for need too much memory: ask for fewer");
    page->rows = sessions;
    return 0;
}

static int session_spec_finish(int r, struct store_page **page, struct aq_error *err)
{
    if (r == 0 && (r = session_spec_read_all(*page, err)) < 0) {
        store_page_free(*page);
        *page = NULL;
    }
    return r;
}

int gql_list_sessions(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                      struct aq_error *err)
{
    return session_spec_finish(store_list_sessions(tx, q, ret, err), ret, err);
}

int gql_find_sessions(struct store_tx *tx, const struct store_query *q, const char *text,
                      struct store_page **ret, struct aq_error *err)
{
    return session_spec_finish(store_find_sessions(tx, q, text, ret, err), ret, err);
}
