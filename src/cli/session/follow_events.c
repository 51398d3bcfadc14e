/* SPDX-License-Identifier: Apache-2.0 */
/* Events of followed sessions, as they come and what was missed of them. */
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/session/follow_internal.h"
#include "model/idle.h"
#include "model/session.h"

#define EVENT_MAX (64u << 10)

/* The image of the only session comes. Elsewhere than on a terminal a line for
 * each phase is enough.
 */
static void follow_show_pull(struct follow *f, const json_t *image)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *name = json_string_value(json_object_get(image, "name"));
    const char *state = json_string_value(json_object_get(image, "state"));
    const char *error = json_string_value(json_object_get(image, "error"));
    const char *agent = json_string_value(json_object_get(image, "agent"));

    if (f->count != 1 || !name || !state)
        return;
    strbuf_addf(&text, "%s: %s %s", f->items[0].session->name, state, name);
    if (error)
        strbuf_addf(&text, " on %s: %s", agent ? agent : "", error);
    else if (f->progress.is_terminal) {
        strbuf_adds(&text, "  ");
        progress_write_bytes(&f->progress, json_integer_value(json_object_get(image, "doneBytes")),
                             json_integer_value(json_object_get(image, "totalBytes")), &text);
    }
    (void)snprintf(f->items[0].pull, sizeof(f->items[0].pull), "%s", text.data);
    utf8_drop_partial(f->items[0].pull);
    follow_show(f);
}

/* One kernel's exit status is all that there is to know of an end, unless it was ended. */
static bool follow_take_end(struct followed *item, const char *event, const json_t *body)
{
    const json_t *code = json_object_get(body, "exitCode");
    const char *reason = json_string_value(json_object_get(body, "reason"));

    if (!item->session->is_single || item->asking || !json_is_integer(code)
        || strcmp(event, "session_terminated") != 0 || (reason && follow_end_text(reason)))
        return false;
    item->is_final = item->has_exit = true;
    item->exit_code = (int)json_integer_value(code) & 255;
    follow_set_stage(item, SESSION_TERMINATED, reason);
    follow_check(item->all);
    return true;
}

/* On its way to run, a session's event says by its name all there is to know. */
static bool follow_take_stage(struct followed *item, const char *event, const json_t *body)
{
    static const struct {
        const char *event;
        enum session_status status;
    } stages[] = { { "session_scheduled", SESSION_SCHEDULED },
                   { "session_preparing", SESSION_PREPARING },
                   { "session_creating", SESSION_CREATING },
                   { "session_started", SESSION_RUNNING } };

    for (size_t i = 0; item->is_known && !item->asking && i < AQ_COUNT(stages); i++)
        if (strcmp(event, stages[i].event) == 0) {
            follow_set_stage(item, stages[i].status,
                             json_string_value(json_object_get(body, "reason")));
            follow_check(item->all);
            return true;
        }
    return false;
}

/* A result comes before the end that it is the result of. */
static bool follow_take_event(struct followed *item, const char *event, const json_t *body)
{
    return follow_take_stage(item, event, body) || follow_take_end(item, event, body)
           || strcmp(event, "session_success") == 0 || strcmp(event, "session_failure") == 0;
}

/* What is about the stream itself. */
static bool follow_take_own_event(struct follow *f, const struct sse_event *event)
{
    if (event->id[0])
        (void)snprintf(f->last_event, sizeof(f->last_event), "%s", event->id);
    if (strcmp(event->event, "gap") == 0)
        follow_ask_all(f);
    else if (strcmp(event->event, "bookmark") == 0)
        f->is_catching_up = false;
    else
        return false;
    return true;
}

/* Warnings that were sent before this command started are not repeated. */
static void follow_warn_of_end(const struct follow *f, const char *id, const char *reason)
{
    for (size_t i = 0; id && !f->is_catching_up && i < f->count; i++) {
        const char *name = f->items[i].session->name;

        if (strcmp(f->items[i].session->id, id) != 0)
            continue;
        if (reason && strcmp(reason, REASON_IDLE_LIFETIME) == 0)
            cli_note(f->cli, "aliquot: session '%s' ends soon: it reaches its maximum lifetime",
                     name);
        else
            cli_note(f->cli,
                     "aliquot: session '%s' ends soon because it is idle; 'aliquot session extend "
                     "%s' keeps it running",
                     name, name);
    }
}

static int follow_on_event(void *data, const struct sse_event *event)
{
    struct follow *f = data;
    json_t *body;
    const char *id;

    if (follow_take_own_event(f, event))
        return 0;
    body = json_loadb(event->data, event->data_len, 0, NULL);
    id = json_string_value(json_object_get(body, "sessionId"));
    if (strcmp(event->event, "session_image_pull") == 0) {
        follow_show_pull(f, json_object_get(body, "image"));
        json_decref(body);
        return 0;
    }
    if (strcmp(event->event, SESSION_EVENT_IDLE_WARNING) == 0)
        follow_warn_of_end(f, id, json_string_value(json_object_get(body, "reason")));
    for (size_t i = 0; id && i < f->count; i++)
        if (strcmp(f->items[i].session->id, id) == 0 && !f->items[i].is_final
            && (f->is_catching_up || !follow_take_event(&f->items[i], event->event, body)))
            follow_ask(&f->items[i]);
    json_decref(body);
    return 0;
}

bool follow_are_new(const struct follow *f)
{
    return f->events && clock_monotonic_usec() < f->new_until_usec;
}

static void follow_on_events_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct follow *f = data;

    if (head->status == 200) {
        if (!follow_are_new(f) && !f->is_catching_up)
            follow_ask_all(f); /* what happened before we listened */
        return;
    }
    f->events = NULL;
    f->last_event[0] = '\0';
    exchange_cancel(ex);
}

static void follow_on_events_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct follow *f = data;

    if (sse_reader_feed(f->reader, bytes, len, &f->err) == 0)
        return;
    f->events = NULL;
    exchange_cancel(ex);
}

static void follow_on_events_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct follow *f = data;

    (void)ex;
    (void)err;
    f->events = NULL;
}

void follow_listen_to_events(struct follow *f)
{
    static const struct exchange_ops ops = {
        .on_head = follow_on_events_head,
        .on_body = follow_on_events_body,
        .on_end = follow_on_events_end,
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct client_request request = { .method = METHOD_GET, .body_max = UINT64_MAX };

    sse_reader_free(f->reader);
    f->reader = sse_reader_new(EVENT_MAX, follow_on_event, f);
    strbuf_adds(&path, "/events/session?scope=session");
    if (f->count == 1)
        cli_path_query(&path, "sessionId", f->items[0].session->id);
    if (f->items[0].session->owner[0])
        cli_path_query(&path, "ownerAccessKey", f->count == 1 ? f->items[0].session->owner : "*");
    if (cli_request_prepare(f->cli, path.data, false, &request, &url, &headers, NULL) < 0)
        return;
    strbuf_addf(&headers, "Last-Event-ID: %s\r\n", f->last_event);
    f->is_catching_up = f->last_event[0] != '\0';
    request.headers = headers.data;
    (void)client_send(f->client, &request, &ops, f, &f->events, NULL);
}
