/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the executor of a kernel's container. */
#include "base/memory.h"
#include "manager/stream/executor_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/stream/command_stream.h"

#define COMMAND "{\"argv\":[\"/opt/kernel/aliquot-runner\",\"--execute\"],\"in_container\":true}"
#define GRACE_MSEC 30000         /* for a busy machine, beyond the time that was asked for */
#define LINE_MAX_BYTES (1 << 20) /* EXECUTION_LINE_MAX of runner/execution.h */

struct executor_link {
    struct pump pump; /* of questions; those from before the agent has connected wait there */
    struct command_stream *stream;
    const struct executor_link_ops *ops;
    void *data;
    uv_timer_t *timer;   /* until an answer must be there */
    struct strbuf line;  /* an answer that is not whole */
    struct aq_error end; /* why there is no more of it; code 0 = there is */
};

/* ---- answers ---- */

/* The link may be gone after it. */
static void executor_link_fail(struct executor_link *link, const char *kind, const char *text)
{
    if (link->end.code)
        return;
    (void)uv_timer_stop(link->timer);
    aq_fail_kind(&link->end, EPIPE, kind, "%s", text);
    link->ops->on_failed(link->data, &link->end);
}

static void executor_link_on_timer(uv_timer_t *timer)
{
    executor_link_fail(timer->data, "service-unavailable",
                       "the session's executor does not answer");
}

/* The link may be gone after it. */
static void executor_link_answer(struct executor_link *link)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = link->line;
    json_auto_t *reply = NULL;
    struct aq_error err = { 0 };

    strbuf_init(&link->line);
    (void)uv_timer_stop(link->timer);
    if (decode_output_json(line.data, line.len, &reply, &err) == 0 && json_is_object(reply))
        link->ops->on_reply(link->data, reply);
    else
        executor_link_fail(link, "service-unavailable",
                           "the session's executor answers what makes no sense");
}

/* It answers one question at a time: nothing follows the end of a line. */
static void executor_link_on_output(void *data, const char *bytes, size_t len)
{
    struct executor_link *link = data;
    const char *end = memchr(bytes, '\n', len);

    strbuf_add(&link->line, bytes, end ? (size_t)(end - bytes) : len);
    if (link->line.len > LINE_MAX_BYTES)
        executor_link_fail(link, "service-unavailable", "the session's executor answers too much");
    else if (end)
        executor_link_answer(link);
}

static void executor_link_on_ended(void *data, int code, int signal)
{
    (void)code;
    (void)signal;
    executor_link_fail(data, "service-unavailable",
                       "the session's executor has ended; run the code again");
}

static void executor_link_on_failed(void *data, const char *kind, const char *text)
{
    if (strcmp(kind, "no-container") == 0 || strcmp(kind, "no-such-program") == 0)
        executor_link_fail(data, "generic-bad-request",
                           "code can be run in sessions of container images only");
    else
        executor_link_fail(data, "service-unavailable", text);
}

static const struct command_stream_ops executor_link_stream_ops = {
    .on_output = executor_link_on_output,
    .on_ended = executor_link_on_ended,
    .on_failed = executor_link_on_failed,
};

/* ---- questions ---- */

int executor_link_open(struct core *core, const struct kernel *kernel,
                       const struct executor_link_ops *ops, void *data, struct executor_link **ret,
                       struct aq_error *err)
{
    struct msg_stream_open open = { .kind = "exec", .input = true, .command = COMMAND };
    struct executor_link *link = aq_alloc(sizeof(*link));
    int r;

    link->timer = aq_alloc(sizeof(*link->timer));
    (void)uv_timer_init(core_loop(core), link->timer);
    link->timer->data = link;
    pump_init(&link->pump);
    strbuf_init(&link->line);
    link->ops = ops;
    link->data = data;
    r = command_stream_open(core, kernel, &open, &link->pump, &executor_link_stream_ops, link,
                            &link->stream, err);
    if (r < 0)
        executor_link_close(link);
    else
        *ret = link;
    return r;
}

int executor_link_ask(struct executor_link *link, const struct executor_question *question,
                      struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (link->end.code) {
        *err = link->end;
        return -err->code;
    }
    strbuf_addf(&text, "%s %s %lld %s %zu %lld\n", question->verb, question->id,
                (long long)question->wait_msec, question->language, question->len,
                (long long)question->limit_msec);
    if (question->len)
        strbuf_add(&text, question->bytes, question->len);
    (void)pump_give(&link->pump, PUMP_CLIENT, text.data, text.len); /* failure: on_failed */
    (void)uv_timer_start(link->timer, executor_link_on_timer,
                         (uint64_t)(question->wait_msec + GRACE_MSEC), 0);
    return 0;
}

static void executor_link_on_timer_closed(uv_handle_t *timer)
{
    free(timer);
}

void executor_link_close(struct executor_link *link)
{
    if (!link)
        return;
    uv_close((uv_handle_t *)link->timer, executor_link_on_timer_closed);
    command_stream_free(link->stream);
    pump_done(&link->pump);
    strbuf_done(&link->line);
    free(link);
}
