/* SPDX-License-Identifier: Apache-2.0 */
/* A client on a loop of its own, for callers that wait. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "http/defer.h"
#include "redis/redis_client.h"

static void try_run_to_end(void *data)
{
    uv_loop_t *loop = data;

    (void)uv_run(loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(loop);
    free(loop);
}

void redis_loop_finish(uv_loop_t *loop)
{
    uv_thread_t thread;

    /* Handles close within a few turns. */
    for (int i = 0; i < 8 && uv_loop_alive(loop); i++)
        (void)uv_run(loop, UV_RUN_NOWAIT);
    if (uv_loop_alive(loop) && uv_thread_create(&thread, try_run_to_end, loop) == 0) {
        (void)pthread_detach(thread);
        return;
    }
    try_run_to_end(loop);
}

struct redis_try {
    bool is_over, is_late;
    struct aq_error err;
};

static void try_on_reply(void *data, const struct redis_reply *reply)
{
    struct redis_try *try = data;

    if (!reply)
        return;
    try->is_over = true;
    if (reply->type != REDIS_ERROR)
        return;
    (void)aq_fail(&try->err, EIO, "it refuses commands: %.250s", reply->text);
    utf8_make_printable(try->err.text);
}

static void try_on_late(void *data)
{
    ((struct redis_try *)data)->is_late = true;
}

int redis_client_try(const struct redis_settings *settings, unsigned msec, struct aq_error *err)
{
    uv_loop_t *loop = aq_alloc(sizeof(*loop));
    struct redis_command command = REDIS_COMMAND_INIT;
    struct redis_client *client = NULL;
    struct redis_try try = { .is_over = false };
    struct redis_status status = { .is_ready = false };
    struct defer *late = NULL;
    int r;

    (void)uv_loop_init(loop);
    r = redis_client_new(
        &(struct redis_client_options){ .loop = loop, .settings = settings, .is_quiet = true },
        &client, err);
    if (r == 0) {
        redis_command_adds(&command, "SET");
        redis_command_adds(&command, "aliquot:doctor");
        redis_command_adds(&command, "1");
        redis_command_adds(&command, "EX");
        redis_command_adds(&command, "10");
        redis_client_send(client, 0, &command, try_on_reply, &try);
        late = defer_call(loop, msec, try_on_late, &try);
        while (!try.is_over && !try.is_late)
            (void)uv_run(loop, UV_RUN_ONCE);
        if (!try.is_late)
            defer_cancel(late);
        redis_client_get_status(client, &status);
        redis_client_free(client);
    }
    redis_loop_finish(loop);
    if (r < 0)
        return r;
    if (try.err.code)
        return aq_fail(err, EIO, "%s: %s", status.server, try.err.text);
    if (!try.is_over)
        return aq_fail(err, EIO, "%s: %s", status.server,
                       status.problem[0] ? status.problem : "no answer");
    return 0;
}
