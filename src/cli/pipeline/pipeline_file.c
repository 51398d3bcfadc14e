/* SPDX-License-Identifier: Apache-2.0 */
/* "pipeline validate": a file is checked without the manager. */
#include "cli/pipeline/pipeline_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/pipeline/pipeline_trigger.h"
#include "cli/verbs.h"

#define READ_MAX (4u << 20) /* bytes: what is too long is refused with its length */

int pipeline_file_read(const char *path, struct strbuf *text, struct pipeline **ret,
                       struct aq_error *err)
{
    int r = cli_read_file(path, READ_MAX, text, err);

    if (r < 0)
        return r;
    r = pipeline_parse(text->data, text->len, ret, err);
    return r < 0 ? aq_error_wrap(err, "%s", strcmp(path, "-") == 0 ? "standard input" : path) : 0;
}

int pipeline_file_add_source(const char *text, json_t *body, struct pipeline **ret,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf file = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    int r;

    if (strcmp(text, "-") != 0 && !strchr(text, '/') && !strchr(text, '.')
        && access(text, R_OK) < 0) {
        (void)json_object_set_new(body, "pipeline", json_string(text));
        return 0;
    }
    if ((r = pipeline_file_read(text, &file, &p, err)) < 0)
        return r;
    (void)json_object_set_new(body, "payload", json_string(file.data));
    if (ret)
        *ret = AQ_TAKE(p);
    return 0;
}

static json_t *pipeline_file_describe(const struct pipeline *p)
{
    json_t *tasks = json_array();

    for (size_t i = 0; i < p->task_count; i++) {
        const struct pipeline_task *task = &p->tasks[i];
        json_t *needs = json_array();

        for (size_t k = 0; k < task->need_count; k++)
            (void)json_array_append_new(needs, json_string(p->tasks[task->needs[k]].name));
        (void)json_array_append_new(tasks, json_pack("{s:s, s:I, s:o, s:I}", "name", task->name,
                                                     "layer", (json_int_t)task->layer, "needs",
                                                     needs, "count", (json_int_t)task->node_count));
    }
    return json_pack("{s:s, s:I, s:o, s:o}", "name", p->name, "count", (json_int_t)p->node_count,
                     "tasks", tasks, "triggers", pipeline_triggers_describe(p));
}

static int pipeline_validate(struct cli *cli, void *data, int argc, char **argv,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    json_auto_t *description = NULL;
    int r = pipeline_file_read(argv[0], &text, &p, err);

    (void)data;
    (void)argc;
    if (r < 0)
        return r;
    if ((r = pipeline_check_zones(p, text.data, text.len, err)) < 0)
        return aq_error_wrap(err, "%s", argv[0]);
    if (output_is_human(&cli->output)) {
        cli_note(cli, "pipeline '%s' is valid: %zu task%s", p->name, p->node_count,
                 p->node_count == 1 ? "" : "s");
        pipeline_triggers_write_next(p, &out);
        return cli_print(&out, err);
    }
    description = pipeline_file_describe(p);
    output_document(&cli->output, description, &out);
    return cli_print(&out, err);
}

const struct cli_verb verb_pipeline_validate = {
    .name = "pipeline validate",
    .args = "FILE",
    .summary = "Check the file of a pipeline",
    .details =
        "Reports the first mistake with its line and column, and when schedules would be due\n"
        "next. No manager is needed. FILE may be '-', standard input.",
    .examples = "aliquot pipeline validate digits.yaml",
    .min_args = 1,
    .max_args = 1,
    .flags = CLI_NO_CONFIG,
    .run = pipeline_validate,
};
