/* SPDX-License-Identifier: Apache-2.0 */
/* manager.c - see manager.h */
#include "web/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "http/problem.h"

#define ASKS_MAX 512 /* under way: anybody may send cookies */

struct manager_ask {
    struct list link;
    struct manager *manager;
    struct uuid id;
    manager_answered_fn *fn;
    void *data;
};

void manager_cancel(struct manager_ask *ask)
{
    if (!ask)
        return;
    list_remove(&ask->link);
    ask->manager->ask_count--;
    free(ask);
}

static void manager_end_ask(struct manager_ask *ask, const json_t *result,
                            const struct aq_error *err, int64_t retry_sec)
{
    struct manager_ask done = *ask;

    manager_cancel(ask);
    if (done.fn)
        done.fn(done.data, result, err, retry_sec);
}

/* ---- what the manager says ---- */

void manager_take_answer(struct manager *m, const struct msg_web_answer *answer)
{
    json_t *result = answer->result ? json_load_string(answer->result, 0) : NULL;
    const struct problem_type *type = answer->error_kind ? problem_find(answer->error_kind) : NULL;
    struct aq_error err = { 0 };

    if (!result)
        (void)aq_fail_kind(&err, type && type->status < 500 ? EACCES : EAGAIN,
                           type ? type->slug : "service-unavailable", "%s",
                           answer->error_text ? answer->error_text : "the manager gave no reason");
    LIST_FOREACH(it, &m->asks) {
        struct manager_ask *ask = LIST_ENTRY(it, struct manager_ask, link);

        if (uuid_equals(&ask->id, &answer->request_id)) {
            manager_end_ask(ask, result, &err, answer->retry_sec);
            break;
        }
    }
    json_decref(result);
}

static int manager_fail_away(struct aq_error *err)
{
    return aq_fail_kind(err, ENOTCONN, "bad-gateway",
                        "the manager is away; people stay logged in, try again soon");
}

/* What was asked it does not know any more. */
void manager_on_disconnected(struct manager *m)
{
    struct aq_error err = { 0 };

    (void)manager_fail_away(&err);
    while (!list_is_empty(&m->asks))
        manager_end_ask(LIST_ENTRY(m->asks.next, struct manager_ask, link), NULL, &err, 1);
}

/* ---- what is asked ---- */

static int manager_send(struct manager *m, const struct uuid *id, const char *op,
                        const json_t *args, struct aq_error *err)
{
    char *text = json_dump_text(args, JSON_COMPACT);
    struct message msg = { .type = MSG_WEB_ASK,
                           .web_ask = { .request_id = *id, .op = op, .args = text } };
    int r = front_send(m->front, &msg, err);

    explicit_bzero(text, strlen(text)); /* of a password */
    free(text);
    return r;
}

int manager_ask(struct manager *m, const char *op, json_t *args, manager_answered_fn *fn,
                void *data, struct manager_ask **ret, struct aq_error *err)
{
    struct manager_ask *ask = NULL;
    int r = 0;

    if (!manager_is_connected(m))
        r = manager_fail_away(err);
    else if (m->ask_count >= ASKS_MAX)
        r = aq_fail_kind(err, EAGAIN, "service-unavailable", "too many log in at once; try again");
    if (r == 0) {
        ask = aq_alloc(sizeof(*ask));
        *ask = (struct manager_ask){ .manager = m, .id = uuid_random(), .fn = fn, .data = data };
        list_add(&m->asks, &ask->link);
        m->ask_count++;
        r = manager_send(m, &ask->id, op, args, err);
    }
    json_decref(args);
    if (ask && r < 0 && r != -EMSGSIZE)
        r = manager_fail_away(err); /* the connection breaks just now */
    if (r < 0)
        manager_cancel(ask);
    else if (fn)
        *ret = ask;
    return r;
}

/* ---- life ---- */

void manager_init(struct manager *m, struct front *front)
{
    m->front = front;
    list_init(&m->asks);
}

void manager_done(struct manager *m)
{
    while (!list_is_empty(&m->asks))
        manager_cancel(LIST_ENTRY(m->asks.next, struct manager_ask, link));
}

bool manager_is_connected(const struct manager *m)
{
    return front_is_connected(m->front);
}
