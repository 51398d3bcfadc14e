/* SPDX-License-Identifier: Apache-2.0 */
/* Have agents do something with images and watch them do it. */
#include "cli/admin/image_command.h"

#include <errno.h>
#include <string.h>

#include "cli/client.h"
#include "cli/list.h"
#include "cli/output/progress.h"

struct image_command_watch {
    struct cli *cli;
    const char *doing;
    struct progress progress;
    json_t *rows; /* one for each agent: its latest state */
    bool is_complete;
};

/* The phase of the slowest agent and the bytes of all. */
static void image_command_show(struct image_command_watch *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int64_t done = 0, total = 0;
    const char *phase = NULL;
    size_t i, busy = 0;
    json_t *row;

    json_array_foreach(w->rows, i, row) {
        const char *state = json_string_value(json_object_get(row, "state"));

        if (!state || strcmp(state, "ready") == 0 || strcmp(state, "failed") == 0)
            continue;
        phase = state;
        busy++;
        done += json_integer_value(json_object_get(row, "done_bytes"));
        total += json_integer_value(json_object_get(row, "total_bytes"));
    }
    if (!phase)
        return;
    strbuf_addf(&text, "%s: %s", w->doing, phase);
    if (json_array_size(w->rows) > 1)
        strbuf_addf(&text, " on %zu of %zu agents", busy, json_array_size(w->rows));
    if (w->progress.is_terminal && total > 0) { /* elsewhere a line for each phase is enough */
        strbuf_adds(&text, "  ");
        progress_write_bytes(&w->progress, done, total, &text);
    }
    progress_stage(&w->progress, text.data);
}

static int image_command_on_event(void *data, const struct sse_event *event)
{
    struct image_command_watch *w = data;
    json_t *status, *row;
    const char *agent;

    if (strcmp(event->event, "server_close") == 0) {
        w->is_complete = true;
        return 0;
    }
    status = json_loadb(event->data, event->data_len, 0, NULL);
    agent = json_string_value(json_object_get(status, "agent"));
    row = agent ? list_find(w->rows, "agent", agent) : NULL;
    if (row)
        (void)json_object_update(row, status);
    else if (agent)
        (void)json_array_append(w->rows, status);
    json_decref(status);
    image_command_show(w);
    return 0;
}

static int image_command_result(const struct image_command_watch *w, struct aq_error *err)
{
    json_t *row;
    size_t i;

    if (!w->is_complete)
        return aq_fail(err, EPIPE,
                       "the manager ended the connection before all agents were done; "
                       "what they fetched is kept, try again");
    json_array_foreach(w->rows, i, row) {
        const char *state = json_string_value(json_object_get(row, "state"));

        if (state && strcmp(state, "failed") == 0)
            return aq_fail(err, EIO, "agent '%.64s': %.240s",
                           json_string_value(json_object_get(row, "agent")),
                           json_is_string(json_object_get(row, "error"))
                               ? json_string_value(json_object_get(row, "error"))
                               : "it failed");
    }
    return 0;
}

int image_command(struct cli *cli, const char *action, const char *doing, const json_t *body,
                  json_t **ret_rows, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/aliquot/v1/images/%s", action);
    struct image_command_watch w = { .cli = cli, .doing = doing, .rows = json_array() };
    int r;

    progress_init(&w.progress, cli->globals.quiet, cli->output.ascii);
    r = cli_stream_events(cli, METHOD_POST, path, body, image_command_on_event, &w, err);
    progress_clear(&w.progress);
    if (r == 0)
        r = image_command_result(&w, err);
    if (json_array_size(w.rows))
        *ret_rows = w.rows;
    else
        json_decref(w.rows);
    return r;
}
