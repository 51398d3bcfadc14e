/* SPDX-License-Identifier: Apache-2.0 */
/* What readers of the live feed see: see live_views.h. */
#include "manager/live/live_views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/live/live_tasks.h"
#include "manager/live/live_text.h"

#define LIVE_PARTS 8            /* ticks in which all rows are gone through */
#define LIVE_FEW 256            /* rows that are gone through in one of them */
#define LIVE_TICK_ROWS_MAX 1024 /* for one thing; a row is some microseconds */

static const char *const topic_names[LIVE_TOPICS] = {
    [LIVE_MAP] = "map",       [LIVE_SESSIONS] = "sessions", [LIVE_QUEUE] = "queue",
    [LIVE_ARRAYS] = "arrays", [LIVE_RUNS] = "runs",         [LIVE_RUN] = "run",
};

const char *live_topic_name(enum live_topic topic)
{
    return topic_names[topic];
}

int live_topic_parse(const char *name, enum live_topic *ret)
{
    for (int i = 0; i < LIVE_TOPICS; i++)
        if (strcmp(topic_names[i], name) == 0) {
            *ret = (enum live_topic)i;
            return 0;
        }
    return -EINVAL;
}

/* ---- rows ---- */

static bool live_view_sees(const struct live_view *view, const struct session *s)
{
    return (!view->access_key || strcmp(view->access_key, s->access_key) == 0)
           && (!view->domain || (s->domain && strcmp(view->domain, s->domain) == 0));
}

/* A row, not only the place of one that is gone. */
static bool live_view_has(const struct live_view *view, const char *key)
{
    const struct live_row *row = map_gets(&view->rows.by_key, key);

    return row && row->fixed;
}

static bool live_view_has_group(const struct live_view *view, const struct agent *agent)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("\n%s\n",
                                                agent->resource_group ? agent->resource_group : "");

    return !view->groups || strstr(view->groups, name);
}

static void live_view_set_agent(struct core *core, struct live_view *view,
                                const struct agent *agent)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf fixed = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf measured = STRBUF_INIT;

    if (!live_view_has_group(view, agent)) {
        live_rows_remove(&view->rows, agent->id);
        return;
    }
    live_text_write_agent(core, agent, &fixed, &measured);
    live_rows_set(&view->rows, agent->id, &fixed, &measured);
}

/* Of the view of sessions or of the queue; the session may have ended by this change. */
static void live_view_set_session(struct core *core, struct live_view *view,
                                  const struct session *s)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf fixed = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf measured = STRBUF_INIT;
    char key[UUID_TEXT_MAX];

    uuid_format(&s->id, key);
    if (view->topic == LIVE_SESSIONS) {
        live_text_write_session(core, s, &fixed, &measured);
    } else if (s->status == SESSION_PENDING) {
        live_text_write_waiting(core, s, &fixed, &measured);
    } else {
        live_rows_remove(&view->rows, key);
        return;
    }
    live_rows_set(&view->rows, key, &fixed, &measured);
}

static void live_view_set_array(const struct core *core, struct live_view *view,
                                const struct core_array *array)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf fixed = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf none = STRBUF_INIT;
    char key[UUID_TEXT_MAX];

    live_text_write_array(core, array, &fixed);
    live_rows_set(&view->rows, uuid_format(&array->array->id, key), &fixed, &none);
}

/* As lists of runs have it: an administrator of a domain sees none of superadmins. */
static bool live_view_sees_run(const struct core *core, const struct live_view *view,
                               const struct pipeline_live *run)
{
    const struct user *user;

    if (!uuid_is_nil(&view->user_id))
        return uuid_equals(&view->user_id, &run->user_id);
    if (!view->domain)
        return true;
    user = core_find_user(core, &run->user_id);
    return user && user->domain && strcmp(user->domain, view->domain) == 0
           && user->role != ROLE_SUPERADMIN;
}

static void live_view_set_run(const struct api *api, struct live_view *view,
                              const struct pipeline_live *run)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf fixed = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf none = STRBUF_INIT;
    char key[UUID_TEXT_MAX];

    live_text_write_run(api, &run->id, &fixed);
    live_rows_set(&view->rows, uuid_format(&run->id, key), &fixed, &none);
}

/* What nobody announces: agents, arrays and runs that the view has no row of. In a large cluster,
 * too, they are soon found.
 */
static void live_view_find_new(struct live_views *views, struct live_view *view)
{
    const struct session_array *found;
    const struct agent *agent;
    struct pipeline_live run;
    struct core_array array;
    char key[UUID_TEXT_MAX];

    for (size_t i = 0; view->topic == LIVE_MAP && (agent = core_get_agent(views->core, i)); i++)
        if (!map_gets(&view->rows.by_key, agent->id))
            live_view_set_agent(views->core, view, agent);
    for (size_t i = 0; view->topic == LIVE_ARRAYS && (found = core_list_array(views->core, i)); i++)
        if (live_view_sees(view, &found->element)
            && !live_view_has(view, uuid_format(&found->id, key))
            && core_get_array(views->core, &found->id, &array))
            live_view_set_array(views->core, view, &array);
    for (size_t i = 0; view->topic == LIVE_RUNS && pipeline_list_live(views->api, i, &run); i++)
        if (live_view_sees_run(views->core, view, &run)
            && !live_view_has(view, uuid_format(&run.id, key)))
            live_view_set_run(views->api, view, &run);
}

static bool live_view_is_of_sessions(const struct live_view *view)
{
    return view->topic == LIVE_SESSIONS || view->topic == LIVE_QUEUE;
}

/* Sessions beyond those of one tick are taken over by the next ones, as if they had changed. */
static void live_view_fill(struct live_views *views, struct live_view *view)
{
    size_t count = 0;

    if (view->topic == LIVE_RUN)
        view->tasks = live_tasks_new(views->api, &view->run_id, &view->rows);
    if (!live_view_is_of_sessions(view)) {
        live_view_find_new(views, view);
        return;
    }
    for (const struct session *s = NULL; (s = core_next_session(views->core, s));) {
        if (!live_view_sees(view, s))
            continue;
        if (count++ < LIVE_TICK_ROWS_MAX)
            live_view_set_session(views->core, view, s);
        else
            map_set(&views->changed, s->id.bytes, sizeof(s->id.bytes), views);
    }
}

/* ---- what is announced ---- */

/* The rows of nodes that a session is, or was, on. */
static void live_views_set_agents_of(struct live_views *views, const struct session *s)
{
    LIST_FOREACH(it, &views->list) {
        struct live_view *view = LIST_ENTRY(it, struct live_view, link);

        for (size_t i = 0; view->topic == LIVE_MAP && i < s->kernel_count; i++) {
            const struct agent *agent = s->kernels[i].agent_id
                                            ? core_find_agent(views->core, s->kernels[i].agent_id)
                                            : NULL;

            if (agent)
                live_view_set_agent(views->core, view, agent);
        }
    }
}

static void live_views_set_session(struct live_views *views, const struct session *s)
{
    LIST_FOREACH(it, &views->list) {
        struct live_view *view = LIST_ENTRY(it, struct live_view, link);

        if (live_view_is_of_sessions(view) && live_view_sees(view, s))
            live_view_set_session(views->core, view, s);
    }
}

/* One that has ended is not found any more by the next tick, so it is shown at once. */
static void live_views_on_event(void *data, const struct core_event *event)
{
    const struct session *s = event->session;
    struct live_views *views = data;

    if (session_is_terminal(s->status)) {
        live_views_set_session(views, s);
        live_views_set_agents_of(views, s);
    } else {
        map_set(&views->changed, s->id.bytes, sizeof(s->id.bytes), views);
    }
}

static void live_views_take_changed(struct live_views *views)
{
    for (size_t i = 0; i < LIVE_TICK_ROWS_MAX && views->changed.count; i++) {
        const struct session *s;
        struct uuid id;

        memcpy(id.bytes, views->changed.entries[views->changed.count - 1].key, sizeof(id.bytes));
        (void)map_remove(&views->changed, id.bytes, sizeof(id.bytes));
        if (!(s = core_find_session(views->core, &id)))
            continue;
        live_views_set_session(views, s);
        live_views_set_agents_of(views, s);
    }
}

/* ---- what is not ---- */

static void live_view_check_row(struct live_views *views, struct live_view *view,
                                const struct live_row *row)
{
    struct core *core = views->core;
    const struct session *s;
    const struct agent *agent;
    struct pipeline_live run;
    struct core_array array;
    struct uuid id;

    if (view->topic == LIVE_MAP) {
        if ((agent = core_find_agent(core, row->key))) {
            live_view_set_agent(core, view, agent);
            return;
        }
    } else if (uuid_parse(row->key, &id) < 0) {
        return;
    } else if (view->topic == LIVE_ARRAYS && core_get_array(core, &id, &array)) {
        live_view_set_array(core, view, &array);
        return;
    } else if (view->topic == LIVE_RUNS && pipeline_get_live(views->api, &id, &run)) {
        live_view_set_run(views->api, view, &run);
        return;
    } else if (live_view_is_of_sessions(view) && (s = core_find_session(core, &id))) {
        live_view_set_session(core, view, s);
        return;
    }
    if (row->version <= view->told) /* its end was */
        live_rows_remove(&view->rows, row->key);
}

/* What few rows show of it goes out at once, by one message for all. */
static void live_view_check(struct live_views *views, struct live_view *view, bool is_round)
{
    size_t all = view->rows.by_key.count, count = AQ_MAX(all / LIVE_PARTS + 1, LIVE_FEW);
    const struct live_row *row;

    if (is_round && view->cursor >= all)
        view->cursor = 0;
    for (count = AQ_MIN(count, LIVE_TICK_ROWS_MAX); view->cursor < all && count; count--)
        if ((row = live_rows_get(&view->rows, view->cursor++)) && row->fixed)
            live_view_check_row(views, view, row);
    live_rows_forget(&view->rows);
    view->told = view->rows.version;
}

void live_views_tick(struct live_views *views)
{
    bool is_round = views->ticks++ % LIVE_PARTS == 0;

    live_views_take_changed(views);
    LIST_FOREACH(it, &views->list) {
        struct live_view *view = LIST_ENTRY(it, struct live_view, link);

        if (view->topic == LIVE_RUN) {
            live_tasks_tick(view->tasks);
            live_rows_forget(&view->rows);
            continue;
        }
        live_view_check(views, view, is_round);
        live_view_find_new(views, view);
    }
}

/* ---- readers ---- */

void live_views_init(struct live_views *views, struct api *api)
{
    *views = (struct live_views){ .api = api, .core = api->core, .changed = MAP_INIT };
    list_init(&views->list);
}

void live_views_done(struct live_views *views)
{
    map_done(&views->changed);
}

static void live_view_free(struct live_view *view)
{
    live_tasks_free(view->tasks);
    live_rows_done(&view->rows);
    free(view->access_key);
    free(view->domain);
    free(view->groups);
    free(view);
}

static struct live_view *live_view_new(struct live_views *views, enum live_topic topic,
                                       const struct live_scope *scope)
{
    struct live_view *view = aq_alloc(sizeof(*view));

    view->topic = topic;
    live_rows_init(&view->rows);
    view->access_key = aq_strdup(scope->access_key);
    view->domain = aq_strdup(scope->domain);
    view->groups = aq_strdup(scope->groups);
    view->user_id = scope->user_id;
    view->run_id = scope->run_id;
    live_view_fill(views, view);
    return view;
}

static bool live_view_is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

struct live_view *live_views_join(struct live_views *views, enum live_topic topic,
                                  const struct live_scope *scope)
{
    struct live_view *view;

    LIST_FOREACH(it, &views->list) {
        view = LIST_ENTRY(it, struct live_view, link);
        if (view->topic == topic && live_view_is_same(view->access_key, scope->access_key)
            && live_view_is_same(view->domain, scope->domain)
            && live_view_is_same(view->groups, scope->groups)
            && uuid_equals(&view->user_id, &scope->user_id)
            && uuid_equals(&view->run_id, &scope->run_id)) {
            view->readers++;
            return view;
        }
    }
    if (!views->subscriber)
        views->subscriber = core_subscribe(views->core, NULL, live_views_on_event, views);
    view = live_view_new(views, topic, scope);
    view->readers = 1;
    list_add(&views->list, &view->link);
    return view;
}

void live_views_leave(struct live_views *views, struct live_view *view)
{
    if (!view || --view->readers)
        return;
    list_remove(&view->link);
    live_view_free(view);
    if (list_is_empty(&views->list)) { /* nothing has to be known of what nobody reads */
        core_unsubscribe(views->core, AQ_TAKE(views->subscriber));
        map_done(&views->changed);
    }
}
