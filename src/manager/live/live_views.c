/* SPDX-License-Identifier: Apache-2.0 */
/* What readers of the live feed see: see live_views.h. */
#include "manager/live/live_views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/live/live_text.h"

#define LIVE_PARTS 8            /* ticks in which all rows are gone through */
#define LIVE_FEW 256            /* rows that are gone through in one of them */
#define LIVE_TICK_ROWS_MAX 1024 /* for one thing; a row is some microseconds */

static const char *const topic_names[LIVE_TOPICS] = {
    [LIVE_MAP] = "map",
    [LIVE_SESSIONS] = "sessions",
    [LIVE_QUEUE] = "queue",
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

static bool live_view_has_group(const struct live_view *view, const struct agent *agent)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("\n%s\n",
                                                agent->resource_group ? agent->resource_group : "");

    return !view->groups || (name && strstr(view->groups, name));
}

static int live_view_set_agent(struct core *core, struct live_view *view, const struct agent *agent)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf fixed = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf measured = STRBUF_INIT;

    if (!live_view_has_group(view, agent)) {
        live_rows_remove(&view->rows, agent->id);
        return 0;
    }
    live_text_write_agent(core, agent, &fixed, &measured);
    return live_rows_set(&view->rows, agent->id, &fixed, &measured);
}

/* Of the view of sessions or of the queue; the session may have ended by this change. */
static int live_view_set_session(struct core *core, struct live_view *view, const struct session *s)
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
        return 0;
    }
    return live_rows_set(&view->rows, key, &fixed, &measured);
}

/* Sessions beyond those of one tick are taken over by the next ones, as if they had changed. */
static int live_view_fill(struct live_views *views, struct live_view *view)
{
    const struct agent *agent;
    size_t count = 0;
    int r = 0;

    for (size_t i = 0;
         view->topic == LIVE_MAP && r == 0 && (agent = core_get_agent(views->core, i)); i++)
        r = live_view_set_agent(views->core, view, agent);
    if (view->topic == LIVE_MAP)
        return r;
    for (const struct session *s = NULL; r == 0 && (s = core_next_session(views->core, s));)
        if (live_view_sees(view, s))
            r = count++ < LIVE_TICK_ROWS_MAX
                    ? live_view_set_session(views->core, view, s)
                    : map_set(&views->changed, s->id.bytes, sizeof(s->id.bytes), views);
    return r;
}

/* ---- what is announced ---- */

/* The rows of nodes that a session is, or was, on. */
static int live_views_set_agents_of(struct live_views *views, const struct session *s)
{
    int r = 0;

    LIST_FOREACH(it, &views->list) {
        struct live_view *view = LIST_ENTRY(it, struct live_view, link);

        for (size_t i = 0; view->topic == LIVE_MAP && r == 0 && i < s->kernel_count; i++) {
            const struct agent *agent = s->kernels[i].agent_id
                                            ? core_find_agent(views->core, s->kernels[i].agent_id)
                                            : NULL;

            if (agent)
                r = live_view_set_agent(views->core, view, agent);
        }
    }
    return r;
}

static int live_views_set_session(struct live_views *views, const struct session *s)
{
    int r = 0;

    LIST_FOREACH(it, &views->list) {
        struct live_view *view = LIST_ENTRY(it, struct live_view, link);

        if (r == 0 && view->topic != LIVE_MAP && live_view_sees(view, s))
            r = live_view_set_session(views->core, view, s);
    }
    return r;
}

/* One that has ended is not found any more by the next tick, so it is shown at once. */
static void live_views_on_event(void *data, const struct core_event *event)
{
    const struct session *s = event->session;
    struct live_views *views = data;
    int r;

    if (!session_is_terminal(s->status))
        r = map_set(&views->changed, s->id.bytes, sizeof(s->id.bytes), views);
    else if ((r = live_views_set_session(views, s)) == 0)
        r = live_views_set_agents_of(views, s);
    views->has_lost = views->has_lost || r < 0;
}

static int live_views_take_changed(struct live_views *views)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < LIVE_TICK_ROWS_MAX && views->changed.count; i++) {
        const struct session *s;
        struct uuid id;

        memcpy(id.bytes, views->changed.entries[views->changed.count - 1].key, sizeof(id.bytes));
        (void)map_remove(&views->changed, id.bytes, sizeof(id.bytes));
        if (!(s = core_find_session(views->core, &id)))
            continue;
        r = live_views_set_session(views, s);
        if (r == 0)
            r = live_views_set_agents_of(views, s);
    }
    return r;
}

/* ---- what is not ---- */

static int live_view_check_row(struct core *core, struct live_view *view,
                               const struct live_row *row)
{
    const struct session *s = NULL;
    const struct agent *agent;
    struct uuid id;

    if (view->topic == LIVE_MAP) {
        if ((agent = core_find_agent(core, row->key)))
            return live_view_set_agent(core, view, agent);
    } else if (uuid_parse(row->key, &id) == 0 && (s = core_find_session(core, &id))) {
        return live_view_set_session(core, view, s);
    }
    if (row->version <= view->told) /* its end was */
        live_rows_remove(&view->rows, row->key);
    return 0;
}

/* What few rows show of it goes out at once, by one message for all. */
static int live_view_check(struct core *core, struct live_view *view, bool is_round)
{
    size_t all = view->rows.by_key.count, count = AQ_MAX(all / LIVE_PARTS + 1, LIVE_FEW);
    const struct live_row *row;
    int r = 0;

    if (is_round && view->cursor >= all)
        view->cursor = 0;
    for (count = AQ_MIN(count, LIVE_TICK_ROWS_MAX); r == 0 && view->cursor < all && count; count--)
        if ((row = live_rows_get(&view->rows, view->cursor++)) && row->fixed)
            r = live_view_check_row(core, view, row);
    live_rows_forget(&view->rows);
    view->told = view->rows.version;
    return r;
}

/* Agents that have joined; in a cluster of many they are soon found, too. */
static int live_view_find_agents(struct core *core, struct live_view *view)
{
    const struct agent *agent;
    int r = 0;

    for (size_t i = 0; r == 0 && (agent = core_get_agent(core, i)); i++)
        if (!map_gets(&view->rows.by_key, agent->id))
            r = live_view_set_agent(core, view, agent);
    return r;
}

static int live_views_begin_again(struct live_views *views)
{
    int r = 0;

    LIST_FOREACH(it, &views->list) {
        if (r == 0)
            r = live_view_fill(views, LIST_ENTRY(it, struct live_view, link));
    }
    views->has_lost = r < 0;
    return r;
}

int live_views_tick(struct live_views *views)
{
    bool is_round = views->ticks++ % LIVE_PARTS == 0;
    int r = live_views_take_changed(views);

    LIST_FOREACH(it, &views->list) {
        struct live_view *view = LIST_ENTRY(it, struct live_view, link);

        if (r == 0)
            r = live_view_check(views->core, view, is_round);
        if (r == 0 && view->topic == LIVE_MAP)
            r = live_view_find_agents(views->core, view);
    }
    if (r == 0 && views->has_lost)
        r = live_views_begin_again(views);
    views->has_lost = views->has_lost || r < 0;
    return r;
}

/* ---- readers ---- */

void live_views_init(struct live_views *views, struct core *core)
{
    *views = (struct live_views){ .core = core, .changed = MAP_INIT };
    list_init(&views->list);
}

void live_views_done(struct live_views *views)
{
    map_done(&views->changed);
}

static void live_view_free(struct live_view *view)
{
    if (!view)
        return;
    live_rows_done(&view->rows);
    free(view->access_key);
    free(view->domain);
    free(view->groups);
    free(view);
}

AQ_DEFINE_CLEANUP(struct live_view, live_view_free)

/* NULL stays NULL. */
static int live_view_copy(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

static struct live_view *live_view_new(struct live_views *views, enum live_topic topic,
                                       const struct live_scope *scope)
{
    AQ_CLEANUP(live_view_freep) struct live_view *view = calloc(1, sizeof(*view));

    if (!view)
        return NULL;
    view->topic = topic;
    live_rows_init(&view->rows);
    if (live_view_copy(scope->access_key, &view->access_key) < 0
        || live_view_copy(scope->domain, &view->domain) < 0
        || live_view_copy(scope->groups, &view->groups) < 0 || live_view_fill(views, view) < 0)
        return NULL;
    return AQ_TAKE(view);
}

static bool live_view_is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Of no view nothing is to be known. */
static void live_views_rest(struct live_views *views)
{
    if (!list_is_empty(&views->list))
        return;
    core_unsubscribe(views->core, AQ_TAKE(views->subscriber));
    map_done(&views->changed);
}

struct live_view *live_views_join(struct live_views *views, enum live_topic topic,
                                  const struct live_scope *scope)
{
    struct live_view *view;

    LIST_FOREACH(it, &views->list) {
        view = LIST_ENTRY(it, struct live_view, link);
        if (view->topic == topic && live_view_is_same(view->access_key, scope->access_key)
            && live_view_is_same(view->domain, scope->domain)
            && live_view_is_same(view->groups, scope->groups)) {
            view->readers++;
            return view;
        }
    }
    if (!views->subscriber
        && !(views->subscriber = core_subscribe(views->core, NULL, live_views_on_event, views)))
        return NULL;
    if (!(view = live_view_new(views, topic, scope))) {
        live_views_rest(views);
        return NULL;
    }
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
    live_views_rest(views);
}
