/* SPDX-License-Identifier: Apache-2.0 */
/* follow_input.c - our standard input for the program of a session that is followed
 *
 * Given once the session runs, over a WebSocket (manager/stream/exec_rest.c). What was read here is
 * not kept: if the connection is lost, or the session restarts, the program did not
 * get it all, and this command says so and does not succeed.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "cli/session/follow_internal.h"
#include "cli/session/standard_input.h"
#include "http/websocket.h"

#define QUEUE_HIGH (256 * 1024)

enum follow_input_state {
    FOLLOW_INPUT_WAITS, /* for the session to run */
    FOLLOW_INPUT_FLOWS,
    FOLLOW_INPUT_OVER,
};

struct follow_input {
    struct followed *item;
    enum follow_input_state state;
    struct websocket *ws;
    struct standard_input in;
    uint64_t read_bytes;
    unsigned refusals;
    bool is_told; /* the manager has said why it takes no more */
};

/* Not all of it will arrive. */
static void follow_input_cut(struct follow_input *input, const char *why)
{
    struct follow *f = input->item->all;

    input->item->is_input_cut = true;
    progress_clear(&f->progress);
    cli_note(f->cli,
             "aliquot: session '%s' does not get all of its input, %llu bytes were read: %s",
             input->item->session->name, (unsigned long long)input->read_bytes, why);
}

static void follow_input_on_read(void *data, const char *message, size_t len)
{
    static const char end[] = "{\"type\":\"end\"}";
    struct follow_input *input = data;

    if (!input->ws)
        return;
    input->read_bytes += len ? len - 1 : 0;
    (void)(len ? websocket_send(input->ws, false, message, len)
               : websocket_send(input->ws, true, end, sizeof(end) - 1));
    standard_input_pause(&input->in, websocket_get_queued(input->ws) > QUEUE_HIGH);
}

static void follow_input_on_open(struct websocket *ws, void *data)
{
    static const char feed[] = "{\"type\":\"feed\"}";

    (void)data;
    (void)websocket_send(ws, true, feed, sizeof(feed) - 1);
}

/* Only now is anything read: until then another try costs nothing. */
static void follow_input_start(struct follow_input *input)
{
    struct follow *f = input->item->all;

    if (input->state != FOLLOW_INPUT_WAITS)
        return;
    input->state = FOLLOW_INPUT_FLOWS;
    if (standard_input_open(&input->in, f->loop, follow_input_on_read, input, &f->err) < 0)
        follow_fail(f);
    else
        standard_input_pause(&input->in, false);
}

/* A program that ends does not need the rest; one that has just ended refuses, too, and
 * is not asked again.
 */
static void follow_input_refused(struct follow_input *input, const json_t *message)
{
    const char *kind = json_string_value(json_object_get(message, "kind"));
    const char *text = json_string_value(json_object_get(message, "message"));

    if (input->state == FOLLOW_INPUT_WAITS && input->refusals++ == 0)
        return;
    input->is_told = true;
    input->state = FOLLOW_INPUT_OVER;
    if (!kind || strcmp(kind, "session-ended") != 0)
        follow_input_cut(input, text ? text : "the manager refused it");
}

static void follow_input_on_message(struct websocket *ws, bool is_text, const char *bytes,
                                    size_t len, void *data)
{
    json_t *message = is_text ? json_loadb(bytes, len, 0, NULL) : NULL;
    const char *type = json_string_value(json_object_get(message, "type"));

    (void)ws;
    if (type && strcmp(type, "started") == 0)
        follow_input_start(data);
    else if (type && (strcmp(type, "failed") == 0 || strcmp(type, "error") == 0))
        follow_input_refused(data, message);
    json_decref(message);
}

static void follow_input_on_drain(struct websocket *ws, void *data)
{
    struct follow_input *input = data;

    (void)ws;
    if (input->in.loop)
        standard_input_pause(&input->in, false);
}

static void follow_input_on_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                                  void *data)
{
    struct follow_input *input = data;

    (void)ws;
    (void)code;
    input->ws = NULL;
    if (input->in.loop)
        standard_input_pause(&input->in, true);
    if (input->state != FOLLOW_INPUT_FLOWS)
        return; /* the next news of the session lead to another try */
    input->state = FOLLOW_INPUT_OVER;
    if (!input->is_told)
        follow_input_cut(input, err && err->code ? err->text : "the connection broke off");
}

static void follow_input_connect(struct follow_input *input)
{
    static const struct websocket_ops ops = {
        .on_open = follow_input_on_open,
        .on_message = follow_input_on_message,
        .on_drain = follow_input_on_drain,
        .on_close = follow_input_on_close,
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct websocket_options options = { .message_max = 0 };
    struct follow *f = input->item->all;

    follow_path(input->item, "/aliquot/v1/sessions/", "/exec", &path);
    if (cli_begin_websocket(f->cli, path.data, &options, &ops, input, &input->ws, &f->err) < 0)
        follow_fail(f);
}

void follow_input_need(struct followed *item)
{
    struct follow_input *input = item->input;

    if (!item->session->has_input)
        return;
    if (input && input->state != FOLLOW_INPUT_WAITS) {
        if (item->status != SESSION_RUNNING && item->status != SESSION_RUNNING_DEGRADED
            && item->status < SESSION_TERMINATING && !item->is_input_cut)
            follow_input_cut(input, "the session starts over");
        return;
    }
    if (item->status != SESSION_RUNNING || (input && input->ws))
        return;
    if (!input)
        item->input = input = aq_alloc(sizeof(*input));
    input->item = item;
    follow_input_connect(input);
}

void follow_input_done(struct followed *item)
{
    if (!item->input)
        return;
    websocket_abort(item->input->ws);
    item->input->ws = NULL;
    standard_input_close(&item->input->in);
    free(AQ_TAKE(item->input));
}
