/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks an executor for something: their requests, and the replies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "runner/app.h"
#include "runner/executor.h"

#define CLIENTS_MAX 128
#define LINE_MAX_BYTES 256
#define SOON_MSEC 50 /* output waits so long for more before it is told */

enum executor_client_wait {
    WAITS_FOR_NOTHING,
    WAITS_FOR_RUN,
    WAITS_FOR_SUGGESTIONS,
    WAITS_FOR_APP
};

struct executor_client {
    struct list link;
    struct executor *executor;
    struct watch watch;
    struct strbuf in, out;
    enum executor_client_wait wait;
    char id[EXECUTION_ID_MAX + 1];
    uint16_t port;      /* of the app; 0 = its end */
    int64_t until_msec; /* monotonic */
    bool has_ended;     /* its sending, or it makes no sense */
    bool is_gone;
};

/* ---- replies ---- */

static void executor_client_drop(struct executor_client *client)
{
    client->executor->client_count--;
    watch_close(&client->watch);
    strbuf_done(&client->in);
    strbuf_done(&client->out);
    list_remove(&client->link);
    free(client);
}

static void executor_client_send(struct executor_client *client)
{
    ssize_t put = client->out.len ? send(client->watch.fd, client->out.data, client->out.len,
                                         MSG_DONTWAIT | MSG_NOSIGNAL)
                                  : 0;

    client->is_gone |= (put < 0 && errno != EAGAIN && errno != EINTR) || !strbuf_ok(&client->out);
    if (put > 0)
        strbuf_consume(&client->out, (size_t)put);
    watch_want(&client->watch,
               (client->has_ended ? 0 : EPOLLIN) | (client->out.len ? EPOLLOUT : 0));
}

static void executor_client_fail(struct executor_client *client, const char *text)
{
    struct jsonw w = jsonw_make(&client->out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "error", text);
    jsonw_object_end(&w);
    strbuf_addc(&client->out, '\n');
}

static void executor_client_reply(struct executor_client *client, struct execution *run)
{
    client->wait = WAITS_FOR_NOTHING;
    run->asked_msec = executor_now();
    if (execution_take(run, &client->out))
        executor_drop_run(client->executor, run);
    strbuf_addc(&client->out, '\n');
}

static void executor_client_settle_app(struct executor_client *client, int64_t now)
{
    client->until_msec = now + APP_LOOK_MSEC;
    if (!apps_settle(&client->executor->apps, client->id, client->port, now, &client->out))
        return;
    strbuf_addc(&client->out, '\n');
    client->wait = WAITS_FOR_NOTHING;
}

/* If there is something to tell, or the time is over. True if there was a reply. */
static bool executor_client_settle(struct executor_client *client, int64_t now)
{
    struct execution *run = executor_find(client->executor, client->id);
    bool is_due = now >= client->until_msec;

    if (client->wait == WAITS_FOR_APP) {
        executor_client_settle_app(client, now);
    } else if (client->wait == WAITS_FOR_RUN && !run) {
        executor_client_fail(client, "no such run; its result may have been read");
        client->wait = WAITS_FOR_NOTHING;
    } else if (client->wait == WAITS_FOR_RUN && (is_due || execution_has_status(run))) {
        executor_client_reply(client, run);
    } else if (client->wait == WAITS_FOR_RUN && run->kept) {
        client->until_msec = AQ_MIN(client->until_msec, now + SOON_MSEC);
    } else if (client->wait == WAITS_FOR_SUGGESTIONS && is_due) {
        strbuf_adds(&client->out, "{\"suggestions\":[]}\n");
        client->wait = WAITS_FOR_NOTHING;
    }
    return client->wait == WAITS_FOR_NOTHING;
}

void executor_clients_suggest(struct executor *ex, const char *json, size_t len)
{
    LIST_FOREACH(it, &ex->clients) {
        struct executor_client *client = LIST_ENTRY(it, struct executor_client, link);

        if (client->wait != WAITS_FOR_SUGGESTIONS)
            continue;
        strbuf_adds(&client->out, "{\"suggestions\":");
        strbuf_add(&client->out, json, len);
        strbuf_adds(&client->out, "}\n");
        client->wait = WAITS_FOR_NOTHING;
        return; /* in the order of asking */
    }
}

/* ---- requests ---- */

static void executor_client_await(struct executor_client *client,
                                  const struct execution_request *request)
{
    struct execution *run = executor_find(client->executor, request->id);

    if (run)
        run->asked_msec = executor_now();
    client->wait = WAITS_FOR_RUN;
    client->until_msec = executor_now() + request->wait_msec;
    memcpy(client->id, request->id, sizeof(client->id));
}

static bool executor_client_is_batch(const char *bytes, size_t len)
{
    size_t ends = 0;

    for (size_t i = 0; i < len; i++)
        ends += bytes[i] == '\0';
    return ends == 3 && bytes[len - 1] == '\0';
}

static void executor_client_refuse(struct executor_client *client, const char *language)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct executor *ex = client->executor;

    language_refuse(ex->languages, ex->language_count, language, &text);
    executor_client_fail(client, strbuf_ok(&text) ? text.data : "there is no such language here");
}

static void executor_client_add_run(struct executor_client *client,
                                    const struct execution_request *request, const char *bytes)
{
    struct executor *ex = client->executor;
    struct interpreter *in = executor_choose(ex, request->language);
    struct execution *run = NULL;

    if (request->verb == EXECUTION_BATCH && !executor_client_is_batch(bytes, request->len))
        executor_client_fail(client, "a batch has three commands");
    else if (request->verb == EXECUTION_RUN && !in)
        executor_client_refuse(client, request->language);
    else if (executor_find(ex, request->id))
        executor_client_fail(client, "there is such a run already");
    else if (ex->run_count == EXECUTION_RUNS_MAX)
        executor_client_fail(client, "too many runs wait; read their results first");
    else if (!(run = execution_new(request, bytes, executor_now())))
        executor_client_fail(client, "the container's memory is short");
    if (!run)
        return;
    run->interpreter = in;
    list_add(&ex->runs, &run->link);
    ex->run_count++;
    executor_client_await(client, request);
}

static void executor_client_answer(struct executor_client *client,
                                   const struct execution_request *request, const char *bytes)
{
    struct executor *ex = client->executor;
    struct execution *run = executor_find(ex, request->id);

    if (!run || run != ex->current || !run->is_waiting) {
        executor_client_fail(client, "this run does not wait for input");
        return;
    }
    run->is_waiting = false;
    interpreter_answer(ex->running, bytes, request->len);
    executor_client_await(client, request);
}

static void executor_client_ask_app(struct executor_client *client,
                                    const struct execution_request *request, const char *bytes)
{
    struct apps *apps = &client->executor->apps;
    int64_t now = executor_now();
    bool is_wanted = request->verb == EXECUTION_APP;

    client->port = 0;
    if (is_wanted
            ? apps_want(apps, request->id, bytes, request->len, now, &client->port, &client->out)
            : apps_want_end(apps, request->id, now, &client->out)) {
        client->wait = WAITS_FOR_APP;
        memcpy(client->id, request->id, sizeof(client->id));
    } else {
        strbuf_addc(&client->out, '\n');
    }
}

/* By the image's own language if that can, else by Python. */
static bool executor_client_complete(struct executor *ex, const char *json, size_t len)
{
    struct interpreter *own = executor_choose(ex, "-"), *python = executor_choose(ex, "python");

    return (own && interpreter_complete(own, json, len))
           || (python != own && interpreter_complete(python, json, len));
}

/* It waits for no answer any more, unless it asks again. */
static void executor_client_interrupt(struct executor *ex)
{
    if (ex->running)
        interpreter_interrupt(ex->running);
    if (ex->current)
        ex->current->is_waiting = false;
}

static void executor_client_do(struct executor_client *client,
                               const struct execution_request *request, const char *bytes)
{
    struct executor *ex = client->executor;

    switch (request->verb) {
    case EXECUTION_RUN:
    case EXECUTION_BATCH:
        executor_client_add_run(client, request, bytes);
        break;
    case EXECUTION_CONTINUE:
        executor_client_await(client, request);
        break;
    case EXECUTION_INPUT:
        executor_client_answer(client, request, bytes);
        break;
    case EXECUTION_INTERRUPT:
        executor_client_interrupt(ex);
        strbuf_adds(&client->out, "{}\n");
        break;
    case EXECUTION_COMPLETE:
        client->wait = WAITS_FOR_SUGGESTIONS;
        client->until_msec = executor_now() + request->wait_msec;
        if (!executor_client_complete(ex, bytes, request->len))
            client->until_msec = 0;
        break;
    case EXECUTION_APPS:
        apps_list(&ex->apps, &client->out);
        strbuf_addc(&client->out, '\n');
        break;
    case EXECUTION_APP:
    case EXECUTION_END_APP:
        executor_client_ask_app(client, request, bytes);
        break;
    }
}

/* One request, if it is there whole. False if there is none, or it makes no sense. */
static bool executor_client_take_request(struct executor_client *client)
{
    char *end = memchr(client->in.data, '\n', AQ_MIN(client->in.len, (size_t)LINE_MAX_BYTES));
    size_t line = end ? (size_t)(end - client->in.data) + 1 : 0;
    struct execution_request request;
    char text[LINE_MAX_BYTES];

    if (!end) {
        client->has_ended |= client->in.len >= LINE_MAX_BYTES;
        return false;
    }
    memcpy(text, client->in.data, line);
    text[line - 1] = '\0';
    if (!execution_parse(text, &request)) {
        client->has_ended = true;
        return false;
    }
    if (client->in.len - line < request.len)
        return false;
    executor_client_do(client, &request, client->in.data + line);
    strbuf_consume(&client->in, line + request.len);
    return true;
}

static void executor_client_on_ready(struct watch *watch, uint32_t events)
{
    struct executor_client *client = watch->owner;
    char bytes[65536];
    ssize_t got = 0;

    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        got = recv(watch->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got > 0)
            strbuf_add(&client->in, bytes, (size_t)got);
        client->has_ended |= got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)
                             || !strbuf_ok(&client->in);
    }
    client->is_gone |= (events & (EPOLLHUP | EPOLLERR)) && got <= 0;
    executor_client_send(client);
}

void executor_clients_accept(struct watch *watch, uint32_t events)
{
    struct executor *ex = watch->owner;
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct executor_client *client = NULL;

    (void)events;
    if (fd >= 0 && ex->client_count < CLIENTS_MAX)
        client = calloc(1, sizeof(*client));
    if (!client) {
        aq_closep(&fd);
        return;
    }
    client->executor = ex;
    strbuf_init(&client->in);
    strbuf_init(&client->out);
    watch_init(&client->watch, ex->epoll, fd, executor_client_on_ready, client);
    watch_want(&client->watch, EPOLLIN);
    list_add(&ex->clients, &client->link);
    ex->client_count++;
}

/* Requests that are there, and what can be answered of them. False if the client has gone. */
static bool executor_client_serve(struct executor_client *client, int64_t now)
{
    bool more = true;

    while (more && client->out.len < EXECUTION_REPLY_MAX
           && (client->wait == WAITS_FOR_NOTHING || executor_client_settle(client, now))) {
        more = executor_client_take_request(client);
        executor_advance(client->executor);
    }
    executor_client_send(client);
    if (!client->is_gone
        && (!client->has_ended || client->wait != WAITS_FOR_NOTHING || client->out.len))
        return true;
    executor_client_drop(client);
    return false;
}

int64_t executor_clients_serve(struct executor *ex, int64_t now)
{
    int64_t next = INT64_MAX;

    LIST_FOREACH(it, &ex->clients) {
        struct executor_client *client = LIST_ENTRY(it, struct executor_client, link);

        if (executor_client_serve(client, now) && client->wait != WAITS_FOR_NOTHING)
            next = AQ_MIN(next, client->until_msec);
    }
    return next;
}
