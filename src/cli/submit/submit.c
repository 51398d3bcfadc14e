/* SPDX-License-Identifier: Apache-2.0 */
/* "submit": a batch script with its options in the first comments, as sbatch(1) takes it. */
#include "cli/submit/submit.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "base/uuid.h"
#include "cli/client.h"
#include "cli/project.h"
#include "cli/session/array.h"
#include "cli/session/create.h"
#include "cli/submit/job_command.h"
#include "cli/submit/job_environ.h"
#include "cli/submit/job_name.h"
#include "cli/verbs.h"

#define COMMAND_MAX (64u << 10) /* the manager's limit of a command */

const struct cli_opt submit_opts[] = {
    SPEC_OPT_ROWS(struct submit_opts, 0),
    ARRAY_OPT_ROW(struct submit_opts),
    { 'n', "count", CLI_INT, offsetof(struct submit_opts, count), "N",
      "run it N times; ALIQUOT_ARRAY_INDEX is 0 to N-1 in them" },
    { 0, "wait", CLI_FLAG, offsetof(struct submit_opts, wait), NULL,
      "wait for its end, and exit as the script did" },
    { 0, "parsable", CLI_FLAG, offsetof(struct submit_opts, parsable), NULL, "print the id alone" },
    { 0, "stdout", CLI_STR, offsetof(struct submit_opts, output), "FILE",
      "write its output to this file, such as out-%A_%a.log, not to the log" },
    { 0, "stderr", CLI_STR, offsetof(struct submit_opts, error), "FILE",
      "write its errors to this file" },
    CLI_OPT_END,
};

void submit_done(struct submit *s)
{
    strbuf_done(&s->text);
    strbuf_done(&s->command);
    free(s->project);
    batch_script_done(&s->script);
    slurm_options_done(&s->slurm);
    for (size_t i = 0; i < AQ_COUNT(s->lines); i++)
        cli_opts_done(submit_opts, &s->lines[i]);
}

/* ---- reading ---- */

/* Makes the script of sbatch --wrap. */
static int submit_wrap(struct submit *s, struct aq_error *err)
{
    s->path = "--wrap";
    s->name = "wrap";
    strbuf_addf(&s->text, "#!/bin/sh\n# made by sbatch --wrap\n\n%s\n", s->wrap);
    return batch_script_parse(s->text.data, s->text.len, &s->script, err);
}

static int submit_read(struct submit *s, int argc, char **argv, struct aq_error *err)
{
    bool is_input = argc == 0 || strcmp(argv[0], "-") == 0;
    int r;

    if (s->wrap)
        return submit_wrap(s, err);
    if (argc == 0 && isatty(STDIN_FILENO))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "a script is wanted: aliquot submit train.sh");
    s->path = is_input ? "standard input" : argv[0];
    s->has_file = !is_input;
    s->name = is_input ? "script" : job_script_name(argv[0]);
    r = cli_read_file(is_input ? "-" : argv[0], BATCH_SCRIPT_MAX, &s->text, err);
    if (r == -EFBIG)
        return aq_fail_kind(err, EFBIG, CLI_KIND_USAGE,
                            "%s has more than %u KiB; let it start a program of the image", s->path,
                            BATCH_SCRIPT_MAX >> 10);
    if (r == 0 && batch_script_parse(s->text.data, s->text.len, &s->script, err) < 0)
        return aq_error_wrap(err, "%s", s->path);
    return r;
}

/* Into the options; what is no option is an error. */
static int submit_parse(struct submit_opts *opts, int argc, char **argv, struct aq_error *err)
{
    const struct cli_opt_set set = { submit_opts, opts };
    int count = 0, r = cli_opts_parse(&set, 1, false, argc, argv, &count, err);

    return r == 0 && count ? aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                          "'%.60s' is no option; arguments of the script follow it "
                                          "on the command line",
                                          argv[0])
                           : r;
}

static int submit_parse_own(struct submit *s, struct aq_error *err)
{
    for (size_t i = 0; i < s->script.count; i++) {
        const struct batch_line *line = &s->script.lines[i];

        for (int k = 0; !line->is_slurm && k < line->argc; k++)
            if (!utf8_is_valid(line->argv[k], strlen(line->argv[k])))
                return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                    "%s: line %u: word %d is not UTF-8; convert it with iconv",
                                    s->path, line->number, k + 1);
        if (!line->is_slurm && submit_parse(&s->lines[1], line->argc, line->argv, err) < 0)
            return aq_error_wrap(err, "%s: line %u", s->path, line->number);
    }
    return 0;
}

int submit_name_gpus(struct cli *cli, int64_t count, char ret[SUBMIT_GPUS_MAX],
                     struct aq_error *err)
{
    static const char *const kinds[] = { ".device", ".shares" };
    const char *found = "cuda.device", *name;
    json_t *slots = NULL, *type;
    int r = cli_call(cli, METHOD_GET, "/config/resource-slots", NULL, &slots, err);

    for (size_t i = AQ_COUNT(kinds); r == 0 && i-- > 0;)
        json_object_foreach(slots, name, type) {
            const char *dot = strchr(name, '.');

            if (dot && strcmp(dot, kinds[i]) == 0)
                found = name;
        }
    (void)snprintf(ret, SUBMIT_GPUS_MAX, "%s=%" PRId64, found, count);
    json_decref(slots);
    return r;
}

/* ", there are a, b", of the groups that the user may name. */
static void submit_list_groups(struct submit *s, struct strbuf *out)
{
    const char *before = "; there are ";
    json_t *answer = NULL, *item;
    size_t i;

    if (cli_call(s->cli, METHOD_GET, "/aliquot/v1/resource-groups?limit=20", NULL, &answer, NULL)
        < 0)
        return;
    json_array_foreach(json_object_get(answer, "items"), i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));

        strbuf_addf(out, "%s%s", name ? before : "", name ? name : "");
        before = name ? ", " : before;
    }
    json_decref(answer);
}

/* What our option is refused for, in words of the line that it came from. */
static int submit_blame(struct submit *s, struct aq_error *err)
{
    const struct slurm_origin *origin = slurm_options_blame(&s->slurm, err->field, err->text);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    size_t len = strlen(err->field);

    if (!origin)
        return -err->code;
    if (origin->line)
        strbuf_addf(&text, "%s: line %u: ", s->path, origin->line);
    strbuf_addf(&text, "--%s: ", origin->name);
    strbuf_adds(&text, strncmp(err->text, err->field, len) == 0 && err->text[len] == ':'
                           ? err->text + len + 2
                           : err->text);
    if (strcmp(origin->option, "--resource-group") == 0 && err->code == ENOENT) {
        strbuf_truncate(&text, text.len - (text.len && text.data[text.len - 1] == '.'));
        submit_list_groups(s, &text);
    }
    return aq_fail_as(err, err->code, err->kind, err->field, "%s", text.data);
}

static int submit_parse_slurm(struct submit *s, bool is_several, struct aq_error *err)
{
    struct cli_list *words = &s->slurm.words;
    int r;

    if (s->slurm.is_sbatch) { /* lines[0] is free: options of sbatch come from the command line */
        s->script.lines[s->script.count++] = s->words;
        s->slurm.default_name = s->name;
    }
    r = slurm_options_translate(&s->script, is_several, &s->slurm, err);
    if (r < 0)
        return strncmp(err->text, "line ", 5) == 0 ? aq_error_wrap(err, "%s", s->path) : r;
    r = s->slurm.gpus ? submit_name_gpus(s->cli, s->slurm.gpus, s->gpus, err) : 0;
    if (r < 0)
        return r;
    if (s->gpus[0]) {
        cli_list_add(words, "--resource");
        cli_list_add(words, s->gpus);
    }
    r = submit_parse(&s->lines[0], (int)words->count, (char **)words->items, err);
    return r < 0 ? submit_blame(s, err) : 0;
}

/* A name of a job that no session can have. */
static void submit_note_name(const struct submit *s)
{
    const char *given = s->slurm.job_name, *name = s->merged->spec.name;

    if (s->slurm.is_sbatch || !given || name != s->lines[0].spec.name
        || (name && strcmp(name, given) == 0))
        return;
    if (name)
        cli_note(s->cli, "%s: line %u: --job-name: the session is called %s", s->path,
                 s->slurm.name_line, name);
    else
        cli_note(s->cli,
                 "%s: line %u: --job-name: no session can be called so; it gets another"
                 " name",
                 s->path, s->slurm.name_line);
}

void submit_note(const struct submit *s)
{
    submit_note_name(s);
    for (size_t i = 0; i < s->slurm.notes.count; i++)
        cli_note(s->cli, "%s: %s", s->path, s->slurm.notes.items[i]);
    if (s->script.late_line)
        cli_note(s->cli, "%s: line %u is not read: options come before the first command", s->path,
                 s->script.late_line);
    if (s->script.other_line)
        cli_note(s->cli, "%s: line %u is not read: options are those of #SBATCH and #ALIQUOT",
                 s->path, s->script.other_line);
    if (s->script.command && !s->slurm.is_sbatch)
        cli_note(s->cli, "%s: line %u: no %s is in the session; the script starts its programs",
                 s->path, s->script.command_line, s->script.command);
}

/* ---- what wins ---- */

/* Forget whom to blame for what the lines of Slurm say in vain. */
static void submit_drop_blame(struct submit *s)
{
    for (size_t i = 0; i < s->slurm.origin_count; i++) {
        const char *option = s->slurm.origins[i].option;
        const struct cli_opt *o = strncmp(option, "--", 2) == 0
                                      ? cli_opt_find(submit_opts, option + 2, strlen(option + 2))
                                      : NULL;
        const void *given = o ? (const char *)s->merged + o->offset : NULL;
        bool is_given = false;

        if (o && o->type == CLI_STR)
            is_given = *(const char *const *)given != NULL;
        else if (o && (o->type == CLI_INT || o->type == CLI_DURATION))
            is_given = ((const struct cli_int *)given)->is_set;
        else if (o && o->type == CLI_LIST)
            is_given = ((const struct cli_list *)given)->count > 0;
        else if (strcmp(option, SLURM_ORIGIN_GPUS) == 0)
            is_given = submit_names_kind(&s->merged->spec.resources, s->gpus,
                                         submit_kind_len(s->gpus));
        else if (strncmp(option, "-r ", 3) == 0)
            is_given = submit_names_kind(&s->merged->spec.resources, option + 3,
                                         strlen(option + 3));
        if (is_given)
            s->slurm.origins[i].option = "";
    }
}

/* ---- the command ---- */

/* The job's name is what its script said, whatever the session is called. */
static void submit_write_environ(struct submit *s)
{
    const struct spec_opts *spec = &s->merged->spec;
    const struct cli_list *resources = &spec->resources;
    const char *given = spec->name == s->lines[0].spec.name ? s->slurm.job_name : NULL;
    struct job_facts facts = {
        .name = spec->name    ? spec->name
                : s->has_file ? s->name
                              : NULL,
        .account = spec->group ? spec->group : s->project,
        .partition = spec->resource_group ? spec->resource_group
                                          : cli_config_get(&s->cli->config, SETTING_RESOURCE_GROUP),
        .spec = spec,
        .slurm = &s->slurm,
    };

    if (given && utf8_is_valid(given, strlen(given)))
        facts.name = given;
    for (size_t i = 0; s->gpus[0] && i < resources->count; i++)
        facts.has_slurm_gpus |= strcmp(resources->items[i], s->gpus) == 0;
    job_environ_write(&facts, &s->command);
}

int submit_write_command(struct submit *s, int argc, char **argv, struct aq_error *err)
{
    const struct job_command job = {
        .name = s->name,
        .text = s->text.data,
        .script = &s->script,
        .argc = argc > 0 ? argc - 1 : 0,
        .argv = argv + 1,
    };

    for (int i = 0; i < job.argc; i++)
        if (!utf8_is_valid(job.argv[i], strlen(job.argv[i])))
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "argument %d of the script is not UTF-8", i + 1);
    if (s->slurm.is_found)
        submit_write_environ(s);
    if (s->place)
        job_place_write(s->place, &s->command);
    job_command_write(&job, &s->command);
    if (s->command.len > COMMAND_MAX)
        return aq_fail_kind(err, EFBIG, CLI_KIND_USAGE,
                            "%s and its arguments are %zu bytes as a command, in which each ' and, "
                            "of a script that is not UTF-8, each byte that is no ASCII is four; "
                            "at most %u may be; let it start a program of the image",
                            s->path, s->command.len, COMMAND_MAX);
    return 0;
}

/* ---- submitting ---- */

/* The name that was given, or one made of the script's. Caller frees. */
static char *submit_make_name(const struct submit *s)
{
    char stem[SESSION_NAME_MAX + 1], *words[] = { stem };

    job_name_clean(s->name, SESSION_NAME_MAX, stem);
    return spec_make_name(&s->merged->spec, stem[0] ? 1 : 0, words);
}

/* The name with a random suffix. */
static void submit_rename(const struct submit *s, const char *name, char ret[SESSION_NAME_MAX + 1])
{
    struct uuid chance = uuid_random();

    if (s->slurm.is_sbatch)
        job_name_with_chance(name, ret);
    else
        (void)snprintf(ret, SESSION_NAME_MAX + 1, "%.*s-%02x%02x%02x",
                       SESSION_NAME_MAX - JOB_CHANCE_MAX - JOB_INDEX_MAX, name, chance.bytes[0],
                       chance.bytes[1], chance.bytes[2]);
}

/* Jobs of Slurm may share a name, or have one that looks like an id; live sessions may not. */
static int submit_create_once(struct submit *s, json_t **ret, struct aq_error *err)
{
    bool may_rename = s->merged->spec.name && s->merged->spec.name == s->lines[0].spec.name;
    struct spec_opts spec = s->merged->spec;
    char *argv[] = { s->command.data, NULL };
    AQ_CLEANUP(aq_freep) char *made = submit_make_name(s);
    char other[SESSION_NAME_MAX + 1];
    struct create_request request = { &spec, true, (size_t)s->merged->count.value, 1, argv, false };
    struct uuid id;
    int r;

    submit_rename(s, made, other);
    spec.name = s->slurm.is_sbatch && uuid_parse(made, &id) == 0 ? other : made;
    r = create_all(s->cli, &request, ret, err);
    if (r != -EEXIST || !may_rename || request.is_partly_done)
        return r;
    submit_rename(s, made, other);
    spec.name = other;
    s->cli->hint[0] = '\0';
    return create_all(s->cli, &request, ret, err);
}

int submit_create(struct submit *s, json_t **ret, struct aq_error *err)
{
    int r = submit_create_once(s, ret, err);

    return r < 0 ? submit_blame(s, err) : r;
}

static int submit_print(struct submit *s, const json_t *created, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct cli_globals *globals = &s->cli->globals;
    bool is_short = s->merged->parsable || (globals->quiet && !globals->format);
    const json_t *item;
    size_t i;

    if (!is_short && (globals->format || globals->columns))
        return create_print(s->cli, created, err);
    json_array_foreach(created, i, item) {
        const char *id = json_string_value(json_object_get(item, "sessionId"));
        const char *name = json_string_value(json_object_get(item, "sessionName"));

        if (is_short)
            strbuf_addf(&out, "%s\n", id ? id : "");
        else
            strbuf_addf(&out, "Submitted session %s %s\n", name ? name : "", id ? id : "");
    }
    return cli_print(&out, err);
}

int submit_prepare(struct submit *s, int argc, char **argv, struct aq_error *err)
{
    int r = submit_read(s, argc, argv, err);

    if (r == 0)
        r = submit_parse_own(s, err);
    if (r == 0)
        r = submit_parse_slurm(s, s->merged->count.is_set || s->lines[1].count.is_set, err);
    if (r == 0)
        submit_merge(s, s->merged, &s->lines[1]);
    submit_drop_blame(s);
    if (r == 0)
        submit_merge(s, s->merged, &s->lines[0]);
    if (r == 0)
        r = create_check_count(&s->merged->spec, &s->merged->count, err);
    if (r == 0 && s->slurm.is_found && !s->merged->spec.group && !s->merged->spec.template)
        r = project_find(s->cli, &s->project, err); /* SLURM_JOB_ACCOUNT has it */
    return r;
}

static int submit_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct submit_opts *opts = data;
    struct submit s = { .cli = cli, .text = STRBUF_INIT, .command = STRBUF_INIT, .merged = opts };
    const struct passwd *me = getpwuid(geteuid());
    struct job_place place = { .user = me ? me->pw_name : "" };
    json_t *created = NULL;
    int r = submit_prepare(&s, argc, argv, err);

    if (opts->output || opts->error) {
        place.output = opts->output;
        place.error = opts->error;
        s.place = &place;
    }
    if (r == 0)
        r = submit_write_command(&s, argc, argv, err);
    if (r == 0) {
        submit_note(&s);
        r = submit_create(&s, &created, err);
    }
    if (r == 0)
        create_note_start(cli, &opts->spec);
    if (r == 0)
        r = submit_print(&s, created, err);
    if (r == 0 && opts->wait)
        r = create_follow(cli, created, &opts->spec, 0, err);
    json_decref(created);
    submit_done(&s);
    return r;
}

const struct cli_verb verb_submit = {
    .name = "submit",
    .args = "[SCRIPT [ARG]...]",
    .summary = "Queue a script whose first comments say what it needs",
    .details = "Lines '#ALIQUOT OPTION...' at the beginning of the script have these options,\n"
               "lines '#SBATCH OPTION...' those of sbatch. The command line wins over\n"
               "#ALIQUOT, which wins over #SBATCH. What has no meaning here is named.\n\n"
               "The script goes to the session with the request, and runs in its image by\n"
               "the interpreter of its first line. Without SCRIPT, or as -, it is read from\n"
               "standard input. Returns as soon as the session is queued, durably.",
    .examples = "aliquot submit train.sh\n"
                "aliquot submit -r cuda.shares=0.5 train.sh --epochs 3\n"
                "aliquot submit --count 10 --wait sweep.sh",
    .opts = submit_opts,
    .opts_size = sizeof(struct submit_opts),
    .max_args = -1,
    .flags = CLI_STOP_AT_FIRST | CLI_RUNS_PROGRAM,
    .run = submit_run,
};
