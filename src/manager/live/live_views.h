/* SPDX-License-Identifier: Apache-2.0 */
/* live_views.h - what readers of the live feed see, kept once for all who see the same
 *
 * A view is a topic as somebody may see it: all sessions, a domain's or a keypair's; the nodes of
 * some resource groups; the tasks of a run. While anybody reads it, changes of sessions are taken over by the next
 * tick, and what nobody announces (what is measured, agents, arrays, runs, places in the queue) by going
 * through the rows once in eight ticks. Everything here belongs to the loop's thread.
 */
#ifndef AQ_MANAGER_LIVE_LIVE_VIEWS_H
#define AQ_MANAGER_LIVE_LIVE_VIEWS_H

#include "manager/call/api.h"
#include "manager/live/live_rows.h"

enum live_topic {
    LIVE_MAP,
    LIVE_SESSIONS,
    LIVE_QUEUE,
    LIVE_ARRAYS,
    LIVE_RUNS, /* of pipelines that have not ended */
    LIVE_RUN,  /* the tasks of one, which may have ended */
    LIVE_TOPICS
};

/* "map" … */
const char *live_topic_name(enum live_topic topic);
/* -EINVAL if it is none. */
int live_topic_parse(const char *name, enum live_topic *ret);

/* Whose: copied. */
struct live_scope {
    const char *access_key; /* of sessions, what waits, arrays; NULL = anybody's */
    const char *domain;     /* likewise, and of runs */
    struct uuid user_id;    /* of runs; nil = anybody's */
    const char *groups;     /* of nodes: "\n" around each resource group; NULL = all */
    struct uuid run_id;     /* of LIVE_RUN */
};

struct live_view {
    struct list link;
    enum live_topic topic;
    char *access_key, *domain, *groups;
    struct uuid user_id, run_id;
    struct live_tasks *tasks; /* of LIVE_RUN: see live_tasks.h */
    size_t readers;
    size_t cursor; /* where the round goes on */
    uint64_t told; /* the version that readers could see before this tick */
    struct live_rows rows;
};

struct live_views {
    struct api *api;
    struct core *core;
    struct list list;
    unsigned ticks;
    struct core_subscriber *subscriber; /* while there is any view */
    struct map changed;                 /* ids of sessions, as bytes */
};

void live_views_init(struct live_views *views, struct api *api);
void live_views_done(struct live_views *views); /* after the last reader */

/* The view of this topic and scope, with its rows. */
struct live_view *live_views_join(struct live_views *views, enum live_topic topic,
                                  const struct live_scope *scope);
void live_views_leave(struct live_views *views, struct live_view *view); /* NULL is fine */

/* Take over what has changed. */
void live_views_tick(struct live_views *views);

#endif
