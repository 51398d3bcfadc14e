/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.c - our server with one small JSON handler, for bench/http */
#include <stdio.h>

#include "http/server.h"

static const char answer[] = "{\"status\":\"ok\",\"id\":\"3f1c0c9e-7f62-4b4b-9d55-0a3c1f4c2f11\"} ";

static void on_get(struct request *req, void *data)
{
    (void)data;
    request_reply(req, 200, "application/json", answer, sizeof(answer) - 1);
}

static const struct route routes[] = {
    { METHOD_GET, "/", 0, on_get, NULL, "Answer", 0, 0 },
};

int main(int argc, char **argv)
{
    struct aq_error err = { .code = 0 };
    struct listener_options listen = { .address = argc > 1 ? argv[1] : "127.0.0.1:18084" };
    struct server_options options = { .app.router = NULL };
    struct router *router = router_new();
    struct server *server = NULL;
    uv_loop_t *loop = uv_default_loop();

    if (router_add(router, routes, 1, NULL, &err) < 0)
        goto fail;
    options.app.router = router;
    server = server_new(loop, &options);
    if (server_listen(server, &listen, NULL, &err) < 0)
        goto fail;
    return uv_run(loop, UV_RUN_DEFAULT);
fail:
    (void)fprintf(stderr, "http_server: %s\n", err.text);
    return 1;
}
