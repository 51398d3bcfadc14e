/* SPDX-License-Identifier: Apache-2.0 */
/* definition_apply.c - what a model definition says, as the specification of a replica
 *
 * Contents of files and words of commands are written between single quotes, which printf, a command
 * of each shell itself, hands on unchanged: nothing in them can end the quotes, and the image needs no
 * other program.
 */
#include <errno.h>
#include <string.h>

#include "serving/command.h"
#include "serving/definition_internal.h"
#include "serving/runtime.h"

#define APPLY_READY_DEFAULT_USEC \
    (INT64_C(30) * 60 * 1000000) /* as of model_service_spec.ready_usec */

/* The lines, each with one end. */
static void apply_write_lines(const struct model_action *a, struct strbuf *out)
{
    if (a->words.count == 0) {
        strbuf_adds(out, ":");
        return;
    }
    strbuf_adds(out, "printf '%s\\n'");
    for (size_t i = 0; i < a->words.count; i++) {
        size_t len = strlen(a->words.items[i]);
        AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;

        strbuf_add(&line, a->words.items[i], len);
        if (len && line.data[len - 1] == '\n')
            strbuf_truncate(&line, len - 1);
        strbuf_addc(out, ' ');
        command_quote(line.data, out);
    }
}

static void apply_write_file(const struct model_action *a, struct strbuf *out)
{
    apply_write_lines(a, out);
    strbuf_adds(out, a->appends ? " >>" : " >");
    command_quote(a->path, out);
    strbuf_addf(out, " || exit\nchmod %o -- ", a->mode);
    command_quote(a->path, out);
    strbuf_adds(out, " || exit\n");
}

/* A command that fails does not stop the others, as in Backend.AI; one that cannot be started does. */
static void apply_write_command(const struct model_action *a, struct strbuf *out)
{
    for (size_t i = 0; i < a->words.count; i++) {
        if (i)
            strbuf_addc(out, ' ');
        command_quote(a->words.items[i], out);
    }
    strbuf_adds(out, " || { s=$?; echo \"aliquot: a pre-start command failed with exit status $s\" "
                     ">&2; [ $s -ne 126 ] && [ $s -ne 127 ]; } || exit $s\n");
}

static void apply_write_message(const struct model_action *a, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;

    for (size_t i = 0; i < a->words.count; i++)
        strbuf_addf(&line, "%s%s", i ? " " : "", a->words.items[i]);
    for (size_t i = 0; i < line.len; i++)
        if (line.data[i] == '\n' || line.data[i] == '\r')
            line.data[i] = ' ';
    strbuf_adds(out, "printf '%s\\n' ");
    command_quote(line.data, out);
    strbuf_adds(out, " || exit\n");
}

/* The actions as a script, in a shell of their own: 'cd' and 'exit' do not reach what follows. */
static void apply_write_actions(const struct model_entry *m, struct strbuf *out)
{
    if (!m->action_count)
        return;
    strbuf_adds(out, "(cd -- ");
    command_quote(m->path, out);
    strbuf_adds(out, " || exit\n");
    for (size_t i = 0; i < m->action_count; i++) {
        const struct model_action *a = &m->actions[i];

        switch (a->kind) {
        case MODEL_ACTION_WRITE_FILE:
        case MODEL_ACTION_WRITE_TEMPFILE:
            apply_write_file(a, out);
            break;
        case MODEL_ACTION_RUN_COMMAND:
            apply_write_command(a, out);
            break;
        case MODEL_ACTION_MKDIR:
            strbuf_adds(out, "mkdir -p -- ");
            command_quote(a->path, out);
            strbuf_adds(out, " || exit\n");
            break;
        case MODEL_ACTION_LOG:
            apply_write_message(a, out);
            break;
        }
    }
    strbuf_adds(out, ") || exit\n");
}

static int apply_bootstrap(const struct model_entry *m, struct model_service_spec *spec,
                           struct arena *arena, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf script = STRBUF_INIT;

    apply_write_actions(m, &script);
    if (!script.len)
        return 0;
    if (spec->session.bootstrap)
        strbuf_adds(&script, spec->session.bootstrap);
    if (script.len > SESSION_BOOTSTRAP_MAX)
        return aq_fail_field(err, E2BIG, "pre_start_actions",
                             "pre_start_actions take %zu bytes as a script%s; at most %d are "
                             "allowed; put large files into the model folder",
                             script.len,
                             spec->session.bootstrap ? " together with the bootstrap script" : "",
                             SESSION_BOOTSTRAP_MAX);
    spec->session.bootstrap = arena_strdup(arena, script.data);
    return 0;
}

/* The spec's own command or that of the definition, in the model's folder. */
static int apply_command(const struct model_entry *m, struct model_service_spec *spec,
                         struct arena *arena, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT, words = STRBUF_INIT,
                                           start = STRBUF_INIT;
    const char *field = spec->session.command ? "command" : "start_command";
    struct aq_error why = { 0 };

    if (spec->session.command)
        command_expand(spec->session.command, &m->variables, &line);
    else if (m->command)
        strbuf_adds(&line, m->command);
    else
        return 0;
    if (m->shell) {
        command_start(line.data, m->shell, m->path, &start);
    } else if (definition_split_command(line.data, &words, &why) < 0) {
        return aq_fail_field(err, EINVAL, field, "%s: %s", field, why.text);
    } else {
        command_start(words.data, NULL, m->path, &start);
    }
    if (start.len > SESSION_COMMAND_MAX)
        return aq_fail_field(err, E2BIG, field, "%s takes %zu bytes; at most %d are allowed", field,
                             start.len, SESSION_COMMAND_MAX);
    spec->session.command = arena_strdup(arena, start.data);
    return 0;
}

static void apply_health(const struct model_entry *m, struct model_service_spec *spec,
                         struct arena *arena)
{
    const struct model_health *h = &m->health;

    if (!spec->health_path && h->path) {
        spec->health_path = arena_strdup(arena, h->path);
        if (!spec->health_status)
            spec->health_status = h->status;
    }
    if (!spec->health_interval_usec)
        spec->health_interval_usec = h->interval_usec;
    if (!spec->health_timeout_usec)
        spec->health_timeout_usec = h->timeout_usec;
    if (!spec->health_retries)
        spec->health_retries = h->retries;
    if (!spec->ready_usec && h->initial_delay_usec > APPLY_READY_DEFAULT_USEC)
        spec->ready_usec = h->initial_delay_usec;
}

static bool apply_is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && (!path[len] || path[len] == '/');
}

/* The model folder is mounted read-only: say so before the first replica fails. */
static void apply_warn(const struct model_entry *m, const struct model_service_spec *spec,
                       struct arena *arena, struct str_list *warnings)
{
    const char *target = spec->model_target ? spec->model_target : SERVING_MODEL_TARGET;

    for (size_t i = 0; warnings && spec->model && i < m->action_count; i++) {
        const struct model_action *a = &m->actions[i];
        const char *base = a->path && a->path[0] == '/' ? a->path : m->path;
        AQ_CLEANUP(aq_freep) char *text = NULL;
        const char *kept;

        if (!a->path || !apply_is_below(base, target))
            continue;
        text = aq_format(
            "pre_start_actions[%zu]: '%.200s' is in the model folder, which is mounted "
            "read-only; write to /tmp or /home/work",
            i, a->path);
        kept = arena_strdup(arena, text);
        (void)arena_append(arena, &warnings->items, &warnings->count, &kept, sizeof(kept));
    }
}

int model_definition_apply(const struct model_definition *d, struct model_service_spec *spec,
                           struct arena *arena, struct str_list *warnings, struct aq_error *err)
{
    const struct model_entry *m = model_definition_find_served(d);
    int r;

    if (!m)
        return aq_fail_field(err, EINVAL, "models[0].service",
                             "models[0].service: is missing; no model of the definition says how "
                             "it is served");
    if ((r = apply_command(m, spec, arena, err)) < 0
        || (r = apply_bootstrap(m, spec, arena, err)) < 0)
        return r;
    if (!spec->port)
        spec->port = m->port;
    apply_health(m, spec, arena);
    command_set_variable(&spec->session.environ, arena, "BACKEND_MODEL_NAME", m->name);
    command_set_variable(&spec->session.environ, arena, "BACKEND_MODEL_PATH", m->path);
    apply_warn(m, spec, arena, warnings);
    return 0;
}
