/* SPDX-License-Identifier: Apache-2.0 */
/* Creating sessions: "session create", and "run" that stays with them. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/client.h"
#include "cli/session/array.h"
#include "cli/session/cluster_spec.h"
#include "cli/session/create.h"
#include "cli/session/follow.h"
#include "cli/session/image_hint.h"
#include "cli/list.h"
#include "cli/session/session.h"
#include "cli/session/session_spec.h"
#include "cli/session/standard_input.h"
#include "cli/session/summary.h"
#include "cli/verbs.h"

#define INPUT_STREAM "stream"
#define INPUT_TERMINAL "terminal"

static const struct column created_columns[] = {
    { "sessionId", "ID", COLUMN_TEXT, 0 },
    { "sessionName", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    COLUMN_END,
};

static int create_one(struct cli *cli, const struct create_request *request, json_t *created,
                      struct aq_error *err)
{
    json_t *body = NULL, *answer = NULL;
    int r = spec_to_json(cli, request->spec, request->is_batch, request->argc, request->argv, 0,
                         &body, err);

    if (r == 0)
        r = cli_call_once(cli, "/session", body, &answer, err);
    if (r == 0)
        (void)json_array_append(created, answer);
    json_decref(body);
    json_decref(answer);
    return r;
}

static int create_take_items(const json_t *answer, json_t *created, struct aq_error *err)
{
    const json_t *items = json_object_get(answer, "items");

    if (!json_is_array(items))
        return aq_fail(err, EPROTO, "the manager's answer has no items");
    (void)json_array_extend(created, (json_t *)items);
    return 0;
}

/* The bodies of the next sessions, as many as one request may have. */
static int create_fill_part(struct cli *cli, const struct create_request *request, size_t first,
                            json_t *list, struct aq_error *err)
{
    size_t bytes = 0;

    while (first + json_array_size(list) < request->count
           && json_array_size(list) < CREATE_AT_ONCE_MAX) {
        size_t next = first + json_array_size(list), len;
        json_t *body = NULL;
        int r = spec_to_json(cli, request->spec, request->is_batch, request->argc, request->argv,
                             (unsigned)(next + 1), &body, err);

        if (r < 0)
            return r;
        len = json_dumpb(body, NULL, 0, JSON_COMPACT);
        bytes += len + 1;
        if (bytes > CREATE_BYTES_MAX && next > first) {
            json_decref(body);
            return 0;
        }
        (void)json_array_append_new(list, body);
    }
    return 0;
}

static int create_part(struct cli *cli, const struct create_request *request, json_t *created,
                       struct aq_error *err)
{
    json_t *list = json_array(), *answer = NULL;
    int r = create_fill_part(cli, request, json_array_size(created), list, err);

    if (r == 0)
        r = cli_call_once(cli, "/aliquot/v1/sessions", list, &answer, err);
    if (r == 0)
        r = create_take_items(answer, created, err);
    json_decref(list);
    json_decref(answer);
    return r;
}

static int create_several(struct cli *cli, struct create_request *request, json_t *created,
                          struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *name = spec_make_name(request->spec, request->argc, request->argv);
    struct spec_opts spec = *request->spec;
    int r = 0;

    spec.name = name;
    spec.array_count = (unsigned)request->count;
    request->spec = &spec;
    while (r == 0 && json_array_size(created) < request->count) {
        size_t before = json_array_size(created);

        r = create_part(cli, request, created, err);
        if (r == 0 && json_array_size(created) == before)
            r = aq_fail(err, EPROTO, "the manager's answer has no items");
    }
    request->is_partly_done = r < 0 && json_array_size(created);
    if (request->is_partly_done)
        cli_hint(cli, "%zu of %zu were created: aliquot ps", json_array_size(created),
                 request->count);
    return r;
}

int create_all(struct cli *cli, struct create_request *request, json_t **ret, struct aq_error *err)
{
    json_t *created = json_array();
    int r = request->count ? create_several(cli, request, created, err)
                           : create_one(cli, request, created, err);

    if (r < 0) {
        json_decref(created);
        return r;
    }
    *ret = created;
    return 0;
}

int create_check_count(const struct spec_opts *spec, const struct cli_int *count,
                       struct aq_error *err)
{
    if (count->is_set && spec->array)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--count and --array exclude each other; --array 0-99 makes 100");
    if (count->is_set && (count->value < 1 || count->value > CREATE_COUNT_MAX))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--count is 1 to %d", CREATE_COUNT_MAX);
    return 0;
}

int create_print(struct cli *cli, const json_t *created, struct aq_error *err)
{
    return list_print(cli, created_columns, created, err);
}

void create_note_start(struct cli *cli, const struct spec_opts *spec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf left = STRBUF_INIT;
    int64_t now = cli->output.now_usec, at, delay;
    char local[CLOCK_ISO_MAX];

    if (!spec->starts_at || !output_is_human(&cli->output))
        return;
    if (clock_parse_local_date(spec->starts_at, &at) < 0) {
        if (clock_parse_duration(spec->starts_at, &delay) < 0)
            return;
        at = now + delay;
    }
    cell_write_span(AQ_MAX(at - now, 0), &left);
    cli_note(cli, "starts at %s (in %s) at the earliest", clock_format_local(at, local), left.data);
}

/* Nothing is followed with --detach: point to the log of the first of several sessions. */
static void create_note_output(const struct cli *cli, const json_t *created)
{
    const char *name = json_string_value(
        json_object_get(json_array_get(created, 0), "sessionName"));

    if (name && json_array_size(created) > 1 && output_is_human(&cli->output))
        cli_note(cli, "with --detach their output is not shown; see one's with: aliquot logs %s",
                 name);
}

/* ---- following ---- */

static int create_read(const struct cli *cli, const json_t *item, const struct spec_opts *spec,
                       struct follow_session *ret, struct aq_error *err)
{
    const char *id = json_string_value(json_object_get(item, "sessionId"));
    const char *name = json_string_value(json_object_get(item, "sessionName"));

    if (!id || !name)
        return aq_fail(err, EPROTO, "the manager's answer has no id");
    *ret = (struct follow_session){
        .is_new = true,
        .is_single = cluster_spec_count(spec) == 1 && !spec->template,
        .has_input = spec->input && strcmp(spec->input, INPUT_STREAM) == 0,
        .timeout_usec = spec->timeout.value,
    };
    (void)snprintf(ret->id, sizeof(ret->id), "%s", id);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    (void)snprintf(ret->owner, sizeof(ret->owner), "%s",
                   cli->globals.owner ? cli->globals.owner : "");
    return 0;
}

int create_follow(struct cli *cli, const json_t *created, const struct spec_opts *spec,
                  unsigned flags, struct aq_error *err)
{
    size_t count = json_array_size(created), i;
    const char *id = json_string_value(json_object_get(json_array_get(created, 0), "sessionId"));
    AQ_CLEANUP(aq_freep) struct follow_session *sessions = aq_alloc_array(count + 1,
                                                                          sizeof(*sessions));
    int status = 0, r = 0;
    json_t *item;

    if (spec->array && id) {
        r = array_follow(cli, id, flags, 0, &status, err);
        return r < 0 ? r : status;
    }
    json_array_foreach(created, i, item)
        if (r == 0)
            r = create_read(cli, item, spec, &sessions[i], err);
    if (r == 0)
        r = follow_sessions(cli, sessions, count, flags, 0, &status, err);
    return r < 0 ? r : status;
}

int create_await(struct cli *cli, const json_t *created, const struct spec_opts *spec,
                 struct follow_session *ret, struct aq_error *err)
{
    int status, r = create_read(cli, json_array_get(created, 0), spec, ret, err);

    return r < 0 ? r : follow_sessions(cli, ret, 1, FOLLOW_START | FOLLOW_CANCEL, 0, &status, err);
}

/* On our terminal. What ends before we are there has its output in the log. */
static int create_on_terminal(struct cli *cli, const json_t *created, const struct spec_opts *spec,
                              struct aq_error *err)
{
    struct attach_result attached = { .was_open = false };
    struct follow_session session;
    int status = 0, r = create_await(cli, created, spec, &session, err);

    if (r < 0 && r != -ECHILD)
        return r;
    if (r == 0)
        r = attach_session(cli, &session, &attached, err);
    if (attached.was_open && (r < 0 || attached.is_detached))
        return r;
    session.is_new = false;
    cli->hint[0] = '\0';
    r = follow_sessions(cli, &session, 1, attached.has_output ? 0 : FOLLOW_LOGS | FOLLOW_CANCEL, 0,
                        &status, err);
    return r < 0 ? r : status;
}

void create_note_files(const struct cli *cli, const struct spec_opts *spec)
{
    if (isatty(STDERR_FILENO) && output_is_human(&cli->output) && !spec->mounts.count
        && !spec->template)
        cli_note(cli, "the session's home directory is deleted when it ends; to keep files, mount "
                      "a folder: 'aliquot folder create NAME', then -v NAME here");
}

/* ---- only asking ---- */

static const struct column dry_run_columns[] = {
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, COLUMN_IS_NAME },
    { "text", "TEXT", COLUMN_TEXT, COLUMN_IS_NESTED },
    { "explanation", "EXPLANATION", COLUMN_TEXT, COLUMN_IS_NESTED },
    COLUMN_END,
};

static int create_dry_run(struct cli *cli, const struct create_request *request,
                          struct aq_error *err)
{
    json_t *body = NULL, *answer = NULL;
    int r = spec_to_json(cli, request->spec, request->is_batch, request->argc, request->argv,
                         request->count ? 1 : 0, &body, err);

    if (r == 0 && request->count)
        (void)json_object_set_new(body, "count", json_integer((json_int_t)request->count));
    if (r == 0)
        r = cli_call(cli, METHOD_POST, "/aliquot/v1/sessions/_/dry-run", body, &answer, err);
    if (r == 0)
        r = record_print(cli, dry_run_columns, answer, err);
    if (r == 0)
        r = session_print_text(cli, answer, err);
    json_decref(body);
    json_decref(answer);
    return r;
}

/* ---- run ---- */

struct run_opts {
    struct spec_opts spec;
    struct cli_int count;
    bool detach, dry_run, remove, interactive, tty, no_input, no_prefix, summary;
};

static const struct cli_opt run_opts[] = {
    SPEC_OPT_ROWS(struct run_opts, 0),
    { 'i', "interactive", CLI_FLAG, offsetof(struct run_opts, interactive), NULL,
      "with standard input, even if that is a terminal" },
    { 't', "tty", CLI_FLAG, offsetof(struct run_opts, tty), NULL,
      "on a terminal: this one, or with --detach one to attach to" },
    { 0, "no-input", CLI_FLAG, offsetof(struct run_opts, no_input), NULL,
      "with an empty standard input" },
    { 0, "no-prefix", CLI_FLAG, offsetof(struct run_opts, no_prefix), NULL,
      "lines of several sessions or kernels without the name before them" },
    ARRAY_OPT_ROW(struct run_opts),
    { 0, "summary", CLI_FLAG, offsetof(struct run_opts, summary), NULL,
      "at the end print how much of its resources it used" },
    { 'n', "count", CLI_INT, offsetof(struct run_opts, count), "N",
      "run it N times; ALIQUOT_ARRAY_INDEX is 0 to N-1 in them" },
    { 'd', "detach", CLI_FLAG, offsetof(struct run_opts, detach), NULL,
      "do not wait; print the session" },
    { 0, "dry-run", CLI_FLAG, offsetof(struct run_opts, dry_run), NULL,
      "start nothing: say whether and when it would start" },
    { 0, "rm", CLI_FLAG, offsetof(struct run_opts, remove), NULL,
      "as docker has it; changes nothing, a session ends with its program" },
    CLI_OPT_END,
};

/* "10" or "1-12:30:00": a time limit, as Slurm has it behind -t. */
static bool create_run_is_slurm_time(const char *word)
{
    return word[0] >= '0' && word[0] <= '9' && strspn(word, "0123456789:-") == strlen(word);
}

static int create_run_check_input(const struct run_opts *opts, const char *command,
                                  struct aq_error *err)
{
    const char *other = opts->no_input       ? "--no-input"
                        : opts->count.is_set ? "--count"
                        : opts->spec.array   ? "--array"
                        : opts->detach       ? "--detach"
                                             : NULL;

    if (opts->interactive && !opts->tty && other)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "-i and %s exclude each other", other);
    if (opts->tty && create_run_is_slurm_time(command))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "-t is for a terminal; a time limit is given with --timeout 10m, not "
                            "-t %.20s",
                            command);
    if (!opts->tty || opts->detach)
        return 0;
    if (opts->no_input || opts->count.is_set || opts->spec.array)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "-t and %s exclude each other", other);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "-t needs a terminal as standard input and output; a session's name "
                            "is given with --name");
    return 0;
}

/* As srun(1) passes it on, but to one session only. */
static const char *create_run_choose_input(const struct run_opts *opts)
{
    if (opts->tty)
        return INPUT_TERMINAL;
    if (opts->detach || opts->no_input || opts->count.is_set || opts->spec.array)
        return NULL;
    return opts->interactive || standard_input_is_given() ? INPUT_STREAM : NULL;
}

static int create_run_session(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    struct run_opts *opts = data;
    struct create_request request = { &opts->spec, true, (size_t)opts->count.value, argc, argv };
    unsigned flags = FOLLOW_LOGS | FOLLOW_CANCEL
                     | (opts->no_prefix                          ? FOLLOW_BARE
                        : opts->count.is_set || opts->spec.array ? FOLLOW_PREFIX
                                                                 : 0);
    json_t *created = NULL;
    int r = create_check_count(&opts->spec, &opts->count, err);

    if (r == 0 && argc == 0 && !opts->spec.template)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                         "COMMAND is missing; without one, name a "
                         "--template that has a startup command");
    if (r == 0 && opts->dry_run)
        return create_dry_run(cli, &request, err);
    if (r == 0)
        r = create_run_check_input(opts, argc ? argv[0] : "", err);
    opts->spec.input = create_run_choose_input(opts);
    if (r == 0)
        r = create_all(cli, &request, &created, err);
    if (r == 0)
        create_note_start(cli, &opts->spec);
    if (r == 0 && opts->detach)
        r = create_print(cli, created, err);
    if (r == 0 && opts->detach)
        create_note_output(cli, created);
    else if (r == 0 && opts->tty)
        r = create_on_terminal(cli, created, &opts->spec, err);
    else if (r == 0)
        r = create_follow(cli, created, &opts->spec, flags, err);
    if (r >= 0 && opts->summary && !opts->detach)
        summary_print(cli, created);
    if (r == EXIT_NO_SUCH_PROGRAM && !opts->spec.image && !opts->spec.template)
        image_hint_note(cli, opts->tty, argc, argv);
    json_decref(created);
    return r;
}

const struct cli_verb verb_run = {
    .name = "run",
    .args = "[COMMAND [ARG]...]",
    .summary = "Run a program in a session of its own and show what it prints",
    .details = "Waits until the session's turn has come, copies the program's output, and\n"
               "exits as the program did. The session goes on if this command is killed or\n"
               "the connection breaks; Ctrl-C twice cancels it, Ctrl-\\ leaves it.\n\n"
               "Standard input is passed on, unless it is a terminal (then -i does) or\n"
               "there are several sessions. -it gives the program this terminal; Ctrl-P\n"
               "Ctrl-Q leaves it, and 'aliquot session attach' comes back.\n\n"
               "One COMMAND word is a line for the shell; several words are the program and\n"
               "its arguments, unchanged. With --template it may be left out, if the template\n"
               "has a startup command.",
    .examples = "aliquot run -r cpu=2 -r mem=4g -- python3 train.py --epochs 3\n"
                "aliquot run 'nproc; free -m'\n"
                "aliquot run -it -r cpu=1 bash\n"
                "aliquot run -- sort <words.txt\n"
                "aliquot run -d -n 100 -r cpu=1 ./simulate --seed 7",
    .opts = run_opts,
    .opts_size = sizeof(struct run_opts),
    .max_args = -1,
    .flags = CLI_STOP_AT_FIRST | CLI_RUNS_PROGRAM,
    .run = create_run_session,
};

/* ---- session create ---- */

struct create_opts {
    struct spec_opts spec;
    struct cli_int count;
    int type;
    bool dry_run;
};

static const struct cli_opt create_opts[] = {
    SPEC_OPT_ROWS(struct create_opts, 't'),
    { 0, "type", CLI_CHOICE, offsetof(struct create_opts, type), "interactive|batch",
      "default: batch if there is a COMMAND, else interactive" },
    ARRAY_OPT_ROW(struct create_opts),
    { 'n', "count", CLI_INT, offsetof(struct create_opts, count), "N",
      "create N of them; ALIQUOT_ARRAY_INDEX is 0 to N-1 in them" },
    { 0, "dry-run", CLI_FLAG, offsetof(struct create_opts, dry_run), NULL,
      "make none: say whether and when it would start" },
    CLI_OPT_END,
};

static int create_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct create_opts *opts = data;
    bool is_batch = opts->type ? opts->type == 2 : argc > 0;
    struct create_request request = { &opts->spec, is_batch, (size_t)opts->count.value, argc,
                                      argv };
    json_t *created = NULL;
    int r = create_check_count(&opts->spec, &opts->count, err);

    opts->spec.is_interactive = opts->type == 1;
    if (r == 0 && opts->dry_run)
        return create_dry_run(cli, &request, err);
    if (r == 0)
        r = create_all(cli, &request, &created, err);
    if (r == 0)
        create_note_start(cli, &opts->spec);
    if (r == 0)
        r = create_print(cli, created, err);
    if (r == 0 && !is_batch)
        create_note_files(cli, &opts->spec);
    json_decref(created);
    return r;
}

const struct cli_verb verb_session_create = {
    .name = "session create",
    .args = "[COMMAND [ARG]...]",
    .summary = "Queue a session and print its id",
    .details = "Returns as soon as the session is queued, durably. Without a COMMAND the\n"
               "session is interactive: 'aliquot session attach' opens a terminal in it.",
    .examples = "aliquot session create -t notebook -r cpu=2 -r mem=8g\n"
                "aliquot session create --after prepare -- python3 train.py",
    .opts = create_opts,
    .opts_size = sizeof(struct create_opts),
    .max_args = -1,
    .flags = CLI_STOP_AT_FIRST,
    .run = create_run,
};
