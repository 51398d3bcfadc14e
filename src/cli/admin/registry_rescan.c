/* SPDX-License-Identifier: Apache-2.0 */
/* admin registry rescan: container registries are asked for their images. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/output/progress.h"
#include "cli/verbs.h"
#include "http/sse.h"
#include "http/url.h"

#define EVENT_MAX (64u << 10)
#define LISTEN_TRIES 5
#define LISTEN_AGAIN_USEC 500000

struct registry_watch {
    struct cli *cli;
    struct progress progress;
    bool is_over, has_failed;
    char message[480]; /* the last */
};

static int registry_rescan_on_event(void *data, const struct sse_event *event)
{
    struct registry_watch *w = data;
    json_t *body = json_loadb(event->data, event->data_len, 0, NULL);
    const char *message = json_string_value(json_object_get(body, "message"));

    if (message)
        (void)snprintf(w->message, sizeof(w->message), "%s", message);
    if (strcmp(event->event, "bgtask_updated") == 0 && message)
        progress_stage(&w->progress, w->message);
    w->has_failed |= strstr(event->event, "_failed") != NULL;
    w->is_over |= w->has_failed || strstr(event->event, "_done") != NULL;
    json_decref(body);
    return 0;
}

struct registry_feed {
    struct sse_reader *reader;
    struct aq_error err;
};

static int registry_rescan_on_body(void *data, const char *bytes, size_t len)
{
    struct registry_feed *feed = data;

    return sse_reader_feed(feed->reader, bytes, len, &feed->err);
}

/* Until the stream ends. */
static int registry_rescan_listen(struct cli *cli, const char *path, struct registry_watch *w,
                                  struct aq_error *err)
{
    struct registry_feed feed = { 0 };
    int r = sse_reader_new(EVENT_MAX, registry_rescan_on_event, w, &feed.reader, err);

    if (r == 0)
        r = cli_stream(cli, METHOD_GET, path, NULL, registry_rescan_on_body, &feed, err);
    sse_reader_free(feed.reader);
    return r;
}

/* A stream that breaks is opened again, and begins with how far it is. */
static int registry_rescan_follow(struct cli *cli, const char *task_id, struct registry_watch *w,
                                  struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r = 0, tries = 0;

    strbuf_adds(&path, "/events/background-task?task_id=");
    url_encode(&path, task_id);
    if (!strbuf_ok(&path))
        return aq_fail_oom(err);
    progress_init(&w->progress, cli->globals.quiet, cli->output.ascii);
    do {
        if (tries)
            (void)usleep(LISTEN_AGAIN_USEC);
        r = registry_rescan_listen(cli, path.data, w, err);
    } while ((r == 0 || r == -EPIPE || r == -ECONNRESET) && !w->is_over && tries++ < LISTEN_TRIES);
    progress_clear(&w->progress);
    if (r == 0 && !w->is_over)
        return aq_fail(err, EPIPE,
                       "the manager ended the connection before it was done; try again");
    return r == 0 && w->has_failed ? aq_fail(err, EIO, "%.300s", w->message) : r;
}

static int registry_rescan_one(struct cli *cli, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    struct registry_watch w = { .cli = cli };
    json_auto_t *answer = NULL;
    const char *id;
    int r;

    strbuf_adds(&path, "/aliquot/v1/registries/");
    url_encode(&path, name);
    strbuf_adds(&path, "/rescan");
    r = cli_call(cli, METHOD_POST, path.data, NULL, &answer, err);
    if (r < 0)
        return r;
    id = json_string_value(json_object_get(answer, "task_id"));
    r = id ? registry_rescan_follow(cli, id, &w, err) : cli_fail_answer(cli, "has no task_id", err);
    if (r == 0)
        cli_note(cli, "%s: %s", name, w.message);
    return r;
}

static int registry_rescan(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++)
        r = registry_rescan_one(cli, argv[i], err);
    return r;
}

const struct cli_verb verb_admin_registry_rescan = {
    .name = "admin registry rescan",
    .args = "REGISTRY...",
    .summary = "Ask container registries for their images, so that 'image ls' lists them",
    .details =
        "Images of a registry can be used by their names without it. The manager reads, with\n"
        "the login that is kept; what it finds of a registry replaces what it found before,\n"
        "or nothing changes if something cannot be read.",
    .examples = "aliquot admin registry rescan registry.example:5000",
    .min_args = 1,
    .max_args = -1,
    .run = registry_rescan,
};
