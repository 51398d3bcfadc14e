/* SPDX-License-Identifier: Apache-2.0 */
/* background_task.c - see background_task.h */
#include "cli/background_task.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/output/progress.h"

#define LISTEN_TRIES 5
#define LISTEN_AGAIN_USEC 500000

struct background_watch {
    struct progress progress;
    bool is_over, has_failed;
    char *message; /* of the last event */
};

static void background_show(struct background_watch *w, const json_t *event)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_int_t total = json_integer_value(json_object_get(event, "total_progress"));

    strbuf_adds(&text, w->message);
    if (total > 1 && w->progress.is_terminal) {
        strbuf_adds(&text, "  ");
        progress_write_bar(&w->progress,
                           json_integer_value(json_object_get(event, "current_progress")), total,
                           &text);
    }
    progress_stage(&w->progress, text.data);
}

static int background_on_event(void *data, const struct sse_event *event)
{
    struct background_watch *w = data;
    json_t *body = json_loadb(event->data, event->data_len, 0, NULL);
    const char *message = json_string_value(json_object_get(body, "message"));

    if (message)
        (void)snprintf(w->message, BACKGROUND_MESSAGE_MAX, "%s", message);
    if (strcmp(event->event, "bgtask_updated") == 0 && message)
        background_show(w, body);
    w->has_failed |= strstr(event->event, "_failed") != NULL;
    w->is_over |= w->has_failed || strstr(event->event, "_done") != NULL;
    json_decref(body);
    return 0;
}

/* A task ends with the manager that started it; another manager answers -ENOENT. */
static int background_conclude(const struct background_watch *w, int r, bool has_broken,
                               struct aq_error *err)
{
    if (r == -ENOENT && has_broken)
        return aq_fail(err, EPIPE,
                       "the manager stopped before it reported the result; check what was done, "
                       "then repeat the command if needed");
    if (r == 0 && !w->is_over)
        return aq_fail(
            err, EPIPE,
            "the manager closed the connection before it reported the result; check what "
            "was done, then repeat the command if needed");
    return r == 0 && w->has_failed ? aq_fail(err, EREMOTEIO, "%.300s", w->message) : r;
}

/* A broken stream is reopened; its first event is the current progress. */
int background_task_follow(struct cli *cli, const json_t *answer, const char *id,
                           char message[BACKGROUND_MESSAGE_MAX], struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const char *task = json_string_value(json_object_get(answer, id));
    struct background_watch w = { .message = message };
    bool goes_on = true, has_broken = false;
    int64_t lost_usec = 0;
    int r = 0, tries = 0;

    message[0] = '\0';
    if (!task)
        return cli_fail_answer(cli, "it has no id of a task", err);
    strbuf_adds(&path, "/events/background-task");
    cli_path_query(&path, "task_id", task);
    progress_init(&w.progress, cli->globals.quiet, cli->output.ascii);
    while (goes_on) {
        r = cli_stream_events(cli, METHOD_GET, path.data, NULL, background_on_event, &w, err);
        goes_on = !w.is_over
                  && (r < 0 ? cli_awaits_manager(cli, err, true, &lost_usec)
                            : tries++ < LISTEN_TRIES);
        has_broken |= goes_on;
        if (goes_on)
            (void)usleep(LISTEN_AGAIN_USEC);
    }
    progress_clear(&w.progress);
    return background_conclude(&w, r, has_broken, err);
}
