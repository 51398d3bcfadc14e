/* SPDX-License-Identifier: Apache-2.0 */
/* A server on a real socket for tests, and clients that say exactly what they are told. */
#include "net.h"

static void net_start(struct net *net, const struct route *routes, size_t count, void *data,
                      struct server_options options, const struct listener_options *listen)
{
    static const struct listener_options loopback = { .address = "127.0.0.1:0" };
    struct aq_error err = { .code = 0 };

    memset(net, 0, sizeof(*net));
    assert_int_equal(uv_loop_init(&net->loop), 0);
    net->router = router_new();
    assert_int_equal(router_add(net->router, routes, count, data, &err), 0);
    options.app.router = net->router;
    net->server = server_new(&net->loop, &options);
    if (server_listen(net->server, listen ? listen : &loopback, &net->listener, &err) < 0)
        fail_msg("%s", err.text);
    (void)snprintf(net->base, sizeof(net->base), "http%s://127.0.0.1:%u",
                   listen && listen->tls ? "s" : "", listener_get_port(net->listener));
}

void net_up(struct net *net, const struct route *routes, size_t count, void *data,
            const struct server_limits *limits, const struct listener_options *listen)
{
    struct server_options options = { .app.router = NULL };

    if (limits)
        options.limits = *limits;
    net_start(net, routes, count, data, options, listen);
}

void net_up_guarded(struct net *net, const struct route *routes, size_t count,
                    server_guard_fn *guard)
{
    net_start(net, routes, count, NULL, (struct server_options){ .app.guard = guard }, NULL);
}

void net_on_stopped(void *data)
{
    ((struct net *)data)->stopped = true;
}

void net_down(struct net *net)
{
    if (!net->stopped)
        server_stop(net->server, 0, net_on_stopped, net);
    RUN_UNTIL(net, net->stopped);
    server_free(net->server);
    router_free(net->router);
    (void)uv_run(&net->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&net->loop), 0);
}

static void raw_on_open(void *data)
{
    ((struct raw *)data)->open = true;
}

static void raw_on_read(void *data, const char *bytes, size_t len)
{
    struct raw *raw = data;

    strbuf_add(&raw->got, bytes, len);
}

static void raw_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    ((struct raw *)data)->ended = true;
}

void raw_open(struct raw *raw, struct net *net)
{
    static const struct stream_ops ops = { raw_on_open, raw_on_read, raw_on_end, NULL };
    struct stream_options options = { .tls = NULL };
    struct address to;

    memset(raw, 0, sizeof(*raw));
    strbuf_init(&raw->got);
    assert_int_equal(address_parse(net->base + strlen("http://"), 0, &to, NULL), 0);
    assert_int_equal(stream_connect(&net->loop, &to, &options, &ops, raw, &raw->stream, NULL), 0);
    RUN_UNTIL(net, raw->open || raw->ended);
}

void raw_say(struct raw *raw, const char *text)
{
    (void)stream_write(raw->stream, text, strlen(text));
}

void raw_close(struct raw *raw)
{
    stream_close(raw->stream);
    strbuf_done(&raw->got);
}

void answer_take(void *data, const struct client_response *response, const struct aq_error *err)
{
    struct answer *answer = data;

    assert_false(answer->done);
    answer->done = true;
    answer->err = *err;
    strbuf_init(&answer->body);
    if (!response)
        return;
    answer->status = response->head->status;
    strbuf_add(&answer->body, response->body, response->body_len);
}
