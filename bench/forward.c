/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c - a server with one JSON handler, and another process that passes requests on to
 * it as a manager that does not lead does, for bench/forward
 *
 *     bench-forward DIRECT LINK PASSED WORK
 *
 * DIRECT and PASSED are for clients, LINK is between the two. The handler takes WORK microseconds
 * of the processor.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "http/certificate.h"
#include "manager/forward/forward.h"

static const char answer[] = "{\"status\":\"ok\",\"id\":\"3f1c0c9e-7f62-4b4b-9d55-0a3c1f4c2f11\"} ";

static int64_t work_nsec;

static int64_t processor_nsec(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void on_get(struct request *req, void *data)
{
    int64_t end = work_nsec ? processor_nsec() + work_nsec : 0;

    (void)data;
    while (end && processor_nsec() < end)
        continue;
    request_reply(req, 200, "application/json", answer, sizeof(answer) - 1);
}

static const struct route routes[] = {
    { METHOD_GET, "/", 0, on_get, NULL, "Answer", 0, 0 },
};

static _Noreturn void stop(const struct aq_error *err)
{
    (void)fprintf(stderr, "forward: %s\n", err->text);
    exit(1);
}

static void listen_at(struct server *server, const char *address)
{
    const struct listener_options options = { .address = address };
    struct aq_error err = { .code = 0 };

    if (server_listen(server, &options, NULL, &err) < 0)
        stop(&err);
}

struct incoming {
    struct server *server;
    struct stream *stream;
};

static void incoming_on_open(void *data)
{
    struct incoming *in = data;

    server_adopt(in->server, in->stream, "", 0);
    free(in);
}

static void incoming_on_read(void *data, const char *bytes, size_t len)
{
    (void)data; /* not before it is open */
    (void)bytes;
    (void)len;
}

static void incoming_on_end(void *data, const struct aq_error *err)
{
    struct incoming *in = data;

    (void)err;
    stream_close(in->stream);
    free(in);
}

static void on_incoming(struct listener *listener, void *data)
{
    static const struct stream_ops ops = { .on_open = incoming_on_open,
                                           .on_read = incoming_on_read,
                                           .on_end = incoming_on_end };
    struct incoming *in = aq_alloc(sizeof(*in));

    in->server = data;
    if (listener_accept(listener, &ops, in, &in->stream, NULL) < 0)
        free(in);
}

static int lead(const char *direct, const char *link, const struct certificate *own)
{
    const struct tls_options tls = { .is_server = true,
                                     .cert_pem = own->cert,
                                     .key_pem = own->key };
    struct listener_options options = { .address = link };
    struct server_options server_options = { .app.router = NULL };
    struct router *router = router_new();
    struct listener *listener;
    struct server *server;
    struct aq_error err = { .code = 0 };

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (router_add(router, routes, 1, NULL, &err) < 0)
        stop(&err);
    server_options.app.router = router;
    server = server_new(uv_default_loop(), &server_options);
    listen_at(server, direct);
    if (tls_context_new(&tls, &options.tls, &err) < 0
        || listener_new(uv_default_loop(), &options, on_incoming, server, &listener, &err) < 0)
        stop(&err);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static int pass_on(const char *address, const char *link, const struct certificate *authority)
{
    const struct tls_options tls = { .ca_pem = authority->cert, .any_name = true };
    struct server_options server_options = { .app.router = NULL };
    struct forward_options options = { .loop = uv_default_loop() };
    struct forward *forward;
    struct aq_error err = { .code = 0 };

    if (tls_context_new(&tls, &options.tls, &err) < 0)
        stop(&err);
    options.server = server_new(options.loop, &server_options);
    forward = forward_new(&options);
    forward_set_leader(forward, link);
    server_set_app(options.server, forward_get_app(forward));
    listen_at(options.server, address);
    return uv_run(options.loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    struct certificate authority = { .cert = NULL }, own = { .cert = NULL };
    struct aq_error err = { .code = 0 };

    if (argc != 5) {
        (void)fprintf(stderr, "usage: bench-forward DIRECT LINK PASSED WORK\n");
        return 2;
    }
    work_nsec = strtol(argv[4], NULL, 10) * 1000;
    if (certificate_authority_new("bench", 2, &authority, &err) < 0
        || certificate_issue(&authority, "leader", 1, &own, &err) < 0)
        stop(&err);
    return fork() ? pass_on(argv[3], argv[2], &authority) : lead(argv[1], argv[2], &own);
}
