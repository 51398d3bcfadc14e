/* SPDX-License-Identifier: Apache-2.0 */
/* silence.c - see silence.h */
#include "cli/silence.h"

#include "cli/client.h"

#define ASK_MSEC 10000 /* between requests, and for each reply */

static void silence_note(struct silence *s, const struct aq_error *err)
{
    if (err && !s->is_noted)
        cli_note(s->cli, "aliquot: the manager does not answer (%s); waiting for it", err->text);
    else if (!err && s->is_noted)
        cli_note(s->cli, "aliquot: the manager answers again");
    s->is_noted = err != NULL;
}

static void silence_on_answer(void *data, const struct client_response *response,
                              const struct aq_error *err)
{
    struct silence *s = data;

    s->asking = NULL;
    silence_note(s, response ? NULL : err);
}

static void silence_on_timer(uv_timer_t *timer)
{
    const struct client_request request = { .method = METHOD_GET, .answer_msec = ASK_MSEC };
    struct silence *s = timer->data;
    struct aq_error err = { 0 };
    bool has_heard = s->has_heard;

    s->has_heard = false;
    if (!has_heard && !s->asking)
        (void)cli_begin_fetch(s->cli, "/aliquot/v1/health", request, silence_on_answer, s,
                              &s->asking, &err);
}

void silence_begin(struct silence *s, struct cli *cli, uv_loop_t *loop)
{
    *s = (struct silence){ .cli = cli, .loop = loop };
    (void)uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    (void)uv_timer_start(&s->timer, silence_on_timer, ASK_MSEC, ASK_MSEC);
}

void silence_broken(struct silence *s)
{
    s->has_heard = true;
    silence_note(s, NULL);
}

static void silence_on_closed(uv_handle_t *handle)
{
    ((struct silence *)handle->data)->is_closed = true;
}

void silence_end(struct silence *s)
{
    exchange_cancel(s->asking);
    uv_close((uv_handle_t *)&s->timer, silence_on_closed);
    while (!s->is_closed)
        (void)uv_run(s->loop, UV_RUN_ONCE);
}
