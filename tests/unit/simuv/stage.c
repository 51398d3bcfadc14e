/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include "base/memory.h"

void stage_run(int64_t usec)
{
    simuv_run_until(simuv_now_usec() + usec, NULL, NULL);
}

/* ---- an end ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    static char room[65536];

    (void)handle;
    (void)suggested;
    *ret = uv_buf_init(room, sizeof(room));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct stage_end *end = stream->data;

    if (got > 0)
        strbuf_add(&end->got, buf->base, (size_t)got);
    else if (got < 0)
        end->ended = (int)got;
}

static void end_begin(struct stage_end *end)
{
    assert_int_equal(uv_read_start((uv_stream_t *)&end->tcp, on_alloc, on_read), 0);
}

static void end_init(struct stage_end *end, uv_loop_t *loop)
{
    *end = (struct stage_end){ .is_open = true };
    strbuf_init(&end->got);
    assert_int_equal(uv_tcp_init(loop, &end->tcp), 0);
    end->tcp.data = end;
}

static void on_connected(uv_connect_t *req, int status)
{
    struct stage_end *end = req->handle->data;

    end->connected = status ? status : 1;
    if (status == 0)
        end_begin(end);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct stage *s = listener->data;

    assert_int_equal(status, 0);
    end_init(&s->server, &s->server_loop);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&s->server.tcp), 0);
    end_begin(&s->server);
}

static void on_closed(uv_handle_t *handle)
{
    ((struct stage_end *)handle->data)->is_closed = true;
}

void stage_close(struct stage_end *end)
{
    uv_close((uv_handle_t *)&end->tcp, on_closed);
    end->is_open = false;
}

void stage_break(struct stage_end *end)
{
    const struct linger none = { .l_onoff = 1, .l_linger = 0 };
    int fd;

    assert_int_equal(uv_fileno((uv_handle_t *)&end->tcp, &fd), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
}

static void on_written(uv_write_t *req, int status)
{
    (void)status;
    free(req);
}

void stage_write(struct stage_end *end, const char *bytes, size_t len)
{
    const uv_buf_t buf = { .base = (char *)(uintptr_t)bytes, .len = len };

    assert_int_equal(
        uv_write(aq_alloc(sizeof(uv_write_t)), (uv_stream_t *)&end->tcp, &buf, 1, on_written), 0);
}

/* ---- the stage ---- */

void stage_init(struct stage *s)
{
    static int hosts;
    struct sockaddr_in at;
    char ip[32];
    int len = sizeof(at);

    *s = (struct stage){ .server_host = 0 };
    hosts++;
    (void)snprintf(ip, sizeof(ip), "10.0.%d.%d", hosts / 100, hosts % 100);
    s->server_host = simuv_add_host(ip);
    simuv_enter(s->server_host);
    assert_int_equal(uv_loop_init(&s->server_loop), 0);
    assert_int_equal(uv_tcp_init(&s->server_loop, &s->listener), 0);
    s->listener.data = s;
    assert_int_equal(uv_ip4_addr(ip, 0, &at), 0);
    assert_int_equal(uv_tcp_bind(&s->listener, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&s->listener, 8, on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&s->listener, (struct sockaddr *)&at, &len), 0);
    s->address = at;
    simuv_leave();
    hosts++;
    (void)snprintf(ip, sizeof(ip), "10.0.%d.%d", hosts / 100, hosts % 100);
    s->client_host = simuv_add_host(ip);
    simuv_enter(s->client_host);
    assert_int_equal(uv_loop_init(&s->client_loop), 0);
    simuv_leave();
}

void stage_connect(struct stage *s)
{
    strbuf_done(&s->client.got);
    strbuf_done(&s->server.got);
    simuv_enter(s->client_host);
    end_init(&s->client, &s->client_loop);
    assert_int_equal(uv_tcp_connect(&s->client.connect, &s->client.tcp,
                                    (struct sockaddr *)&s->address, on_connected),
                     0);
    simuv_leave();
}

void stage_set_cut(struct stage *s, bool is_cut)
{
    const struct simuv_path path = { .latency_min_usec = 100,
                                     .latency_max_usec = 200,
                                     .is_cut = is_cut };

    simuv_set_path(s->server_host, s->client_host, &path);
    simuv_set_path(s->client_host, s->server_host, &path);
}

void stage_crash_server(struct stage *s, bool is_silent)
{
    simuv_crash(s->server_host, is_silent);
    s->is_server_gone = true;
}

static void end_done(struct stage_end *end)
{
    if (end->is_open)
        stage_close(end);
    strbuf_done(&end->got);
}

void stage_done(struct stage *s)
{
    end_done(&s->client);
    assert_int_equal(uv_run(&s->client_loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&s->client_loop), 0);
    if (s->is_server_gone) {
        strbuf_done(&s->server.got);
        return;
    }
    end_done(&s->server);
    uv_close((uv_handle_t *)&s->listener, NULL);
    assert_int_equal(uv_run(&s->server_loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&s->server_loop), 0);
}
