/* SPDX-License-Identifier: Apache-2.0 */
/* Background tasks whose followers end, follow and end others while they are told. The HTTP server is
 * the test's: a request ends as it does there, and its memory goes with it.
 */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "http/sse.h"
#include "manager/call/api.h"
#include "manager/call/tasks.h"

#define FOLLOWERS 4

struct request {
    struct arena arena;
    void (*on_gone)(struct request *req, void *data);
    void *gone_data;
    char name;
};

static const struct principal follower = { .access_key = "KEY" };
static struct tasks *tasks;
static struct task *task;
static struct request *requests[FOLLOWERS + 1];
static char told[128];         /* "a." an event, "a!" its end */
static void (*act)(size_t at); /* what happens within an event, or an end */

static void tell(const struct request *req, char what)
{
    size_t len = strlen(told);

    assert_true(len + 2 < sizeof(told));
    told[len] = req->name;
    told[len + 1] = what;
    told[len + 2] = '\0';
}

/* ---- the HTTP server ---- */

struct arena *request_get_arena(struct request *req)
{
    return &req->arena;
}

const char *request_get_header(const struct request *req, const char *name)
{
    (void)req, (void)name;
    return NULL;
}

uv_loop_t *request_get_loop(const struct request *req)
{
    (void)req;
    return uv_default_loop();
}

void request_set_gone(struct request *req, void (*on_gone)(struct request *req, void *data),
                      void *data)
{
    req->on_gone = on_gone;
    req->gone_data = data;
}

void request_end(struct request *req)
{
    size_t at = (size_t)(req->name - 'a');

    tell(req, '!');
    requests[at] = NULL;
    arena_done(&req->arena);
    free(req);
    act(at);
}

void sse_begin(struct request *req, void (*on_drain)(struct request *req, void *data), void *data)
{
    (void)req, (void)on_drain, (void)data;
}

/* A client that is too slow to be kept: those with capital letters in the events. */
int sse_send(struct request *req, const char *event, const char *id, const char *data, size_t len)
{
    (void)event, (void)id, (void)len;
    if (strcmp(data, "{}") == 0)
        return 0;
    tell(req, '.');
    return strstr(data, "too slow") ? -ENOBUFS : 0;
}

/* ---- the API ---- */

const struct principal *api_principal(const struct request *req)
{
    (void)req;
    return &follower;
}

bool principal_is_superadmin(const struct principal *who)
{
    (void)who;
    return false;
}

int api_fail_param(struct aq_error *err, const char *field, const char *fmt, ...)
{
    (void)field, (void)fmt;
    return aq_fail(err, EINVAL, "field");
}

void api_write_uuid(struct jsonw *w, const char *key, const struct uuid *id)
{
    (void)w, (void)key, (void)id;
}

/* ---- what happens ---- */

static void follow(size_t at)
{
    struct request *req = calloc(1, sizeof(*req));
    struct aq_error err = { 0 };

    assert_non_null(req);
    req->name = (char)('a' + at);
    requests[at] = req;
    if (tasks_follow(tasks, task_id(task), req, &err) < 0)
        fail_msg("%s", err.text);
}

static void leave(size_t at)
{
    if (requests[at])
        requests[at]->on_gone(requests[at], requests[at]->gone_data);
}

static void act_nothing(size_t at)
{
    (void)at;
}

static void act_next_leaves(size_t at)
{
    leave(at + 1);
}

static void act_all_leave(size_t at)
{
    (void)at;
    act = act_nothing;
    for (size_t i = 0; i <= FOLLOWERS; i++)
        leave(i);
}

static void act_one_comes(size_t at)
{
    if (at == 0)
        follow(FOLLOWERS);
}

/* So many tasks end meanwhile that this one is forgotten. */
static void act_others_end(size_t at)
{
    (void)at;
    act = act_nothing;
    for (size_t i = 0; i < TASKS_KEPT; i++)
        task_end(task_start(tasks, &follower.user_id, NULL), false, "");
}

static void begin(void)
{
    tasks = tasks_new();
    task = task_start(tasks, &follower.user_id, NULL);
    act = act_nothing;
    for (size_t i = 0; i < FOLLOWERS; i++)
        follow(i);
    told[0] = '\0';
}

static void end(void)
{
    act = act_nothing;
    for (size_t i = 0; i <= FOLLOWERS; i++)
        leave(i);
    tasks_free(tasks);
}

/* ---- the tests ---- */

static void test_followers_that_are_too_slow(void **state)
{
    static const struct {
        const char *name, *told;
        void (*act)(size_t at);
    } cases[] = {
        { "nothing", "a.a!b.b!c.c!d.d!", act_nothing },
        { "the next one leaves", "a.a!b!c!d!", act_next_leaves },
        { "all leave", "a.a!b!c!d!", act_all_leave },
        { "one comes", "a.a!e.e!b.b!c.c!d.d!", act_one_comes },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        begin();
        act = cases[i].act;
        task_update(task, 1, "too slow");
        assert_row(strcmp(told, cases[i].told) == 0, "%s: %s", cases[i].name, told);
        end();
    }
}

static void test_the_end_of_a_task(void **state)
{
    static const struct {
        const char *name, *told;
        void (*act)(size_t at);
    } cases[] = {
        { "nothing", "a.a!b.b!c.c!d.d!", act_nothing },
        { "the next one leaves", "a.a!b!c!d!", act_next_leaves },
        { "all leave", "a.a!b!c!d!", act_all_leave },
        { "the task is forgotten", "a.a!", act_others_end },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        begin();
        act = cases[i].act;
        task_end(task, false, "");
        assert_row(strcmp(told, cases[i].told) == 0, "%s: %s", cases[i].name, told);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_followers_that_are_too_slow),
        cmocka_unit_test(test_the_end_of_a_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
