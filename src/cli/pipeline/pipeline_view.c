/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_view.c - a run of a pipeline as a graph */
#include "cli/pipeline/pipeline_view.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "cli/pipeline/pipeline_trigger.h"
#include "base/utf8.h"

#define VIEW_VALUE_WIDTH 60 /* columns of a value */

/* "12s" from the start to the end, or until now. */
static void pipeline_view_write_span(const json_t *row, int64_t now_usec, struct strbuf *out)
{
    int64_t from, until = now_usec;

    if (clock_parse_date(output_text(row, "started_at"), &from) < 0)
        return;
    if (json_is_string(json_object_get(row, "ended_at")))
        (void)clock_parse_date(output_text(row, "ended_at"), &until);
    cell_write_duration(AQ_MAX(until - from, 0) / USEC_PER_SEC, out);
}

static struct graph_state pipeline_view_state(struct arena *arena, const json_t *task,
                                              int64_t now_usec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf note = STRBUF_INIT;
    const char *word = output_text(task, "state"), *reason = output_text(task, "reason");
    const char *status = output_text(task, "session_status");
    json_int_t attempt = json_integer_value(json_object_get(task, "attempt"));

    if (strcmp(word, "skipped") != 0 && strcmp(word, "waiting") != 0)
        pipeline_view_write_span(task, now_usec, &note);
    if (strcmp(word, "running") == 0 && *status && strcmp(status, "RUNNING") != 0)
        strbuf_addf(&note, "%s%s", note.len ? ", " : "", status);
    if (attempt > 1)
        strbuf_addf(&note, "%sattempt %lld", note.len ? ", " : "", (long long)attempt);
    if (*reason)
        strbuf_addf(&note, "%s%s", note.len ? ", " : "", reason);
    return (struct graph_state){ word, arena_strdup(arena, note.data) };
}

int pipeline_view_open(struct pipeline_view *view, const json_t *run, int64_t now_usec,
                       struct aq_error *err)
{
    const char *text = output_text(run, "text");
    struct map by_name = MAP_INIT;
    json_t *task;
    size_t i;
    int r;

    *view = (struct pipeline_view){ .file = NULL };
    if ((r = pipeline_parse(text, strlen(text), &view->file, err)) < 0)
        return aq_error_wrap(err, "the file of the run");
    json_array_foreach(json_object_get(run, "tasks"), i, task)
        (void)map_sets(&by_name, output_text(task, "name"), task);
    view->states = arena_array(&view->arena, view->file->node_count, sizeof(*view->states));
    for (i = 0; i < view->file->node_count; i++) {
        task = map_gets(&by_name, view->file->nodes[i].name);
        view->states[i] = task ? pipeline_view_state(&view->arena, task, now_usec)
                               : (struct graph_state){ "waiting", "" };
    }
    map_done(&by_name);
    return 0;
}

void pipeline_view_close(struct pipeline_view *view)
{
    pipeline_free(view->file);
    arena_done(&view->arena);
}

/* "  prepare.count = 3" for each value, as far as a line goes. */
static void pipeline_view_write_outputs(const json_t *run, struct strbuf *out)
{
    const json_t *task, *value;
    const char *name;
    bool is_first = true;
    size_t i;

    json_array_foreach(json_object_get(run, "tasks"), i, task) {
        json_object_foreach(json_object_get(task, "outputs"), name, value) {
            const char *text = json_string_value(value);
            size_t len = text ? strcspn(text, "\n") : 0;
            size_t shown = utf8_fit(text ? text : "", len, VIEW_VALUE_WIDTH);

            strbuf_addf(out, "%s  %s.%s = ", is_first ? "\n" : "", output_text(task, "name"), name);
            utf8_write_printable(text ? text : "", shown, out);
            strbuf_adds(out, text && text[shown] ? " ...\n" : "\n");
            is_first = false;
        }
    }
}

void pipeline_view_write(const struct pipeline_view *view, const json_t *run,
                         const struct output *o, struct strbuf *out)
{
    const char *by = output_text(run, "started_by"), *due = output_text(run, "due_at");

    strbuf_addf(out, "%s  %s  %lld of %lld tasks succeeded\n", output_text(run, "name"),
                output_text(run, "state"),
                (long long)json_integer_value(json_object_get(run, "succeeded")),
                (long long)json_integer_value(json_object_get(run, "task_count")));
    if (*by)
        strbuf_addf(out, "started by %s%s%s\n", by, *due ? ", due " : "", due);
    pipeline_triggers_write(view->file, out);
    strbuf_addc(out, '\n');
    graph_write_text(view->file, view->states, (struct graph_style){ o->ascii, o->colour }, out);
    pipeline_view_write_outputs(run, out);
}
