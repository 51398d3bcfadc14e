/* SPDX-License-Identifier: Apache-2.0 */
/* "submit": a batch script with its options in the first comments, as sbatch(1) takes it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "base/uuid.h"
#include "base/vec.h"
#include "cli/client.h"
#include "cli/project.h"
#include "cli/session/array.h"
#include "cli/session/create.h"
#include "cli/submit/batch_script.h"
#include "cli/submit/job_command.h"
#include "cli/submit/job_environ.h"
#include "cli/submit/job_name.h"
#include "cli/submit/slurm_options.h"
#include "cli/verbs.h"

#define COMMAND_MAX (64u << 10) /* the manager's limit of a command */

struct submit_opts {
    struct spec_opts spec;
    struct cli_int count;
    bool wait, parsable;
};

static const struct cli_opt submit_opts[] = {
    SPEC_OPT_ROWS(struct submit_opts, 0),
    ARRAY_OPT_ROW(struct submit_opts),
    { 'n', "count", CLI_INT, offsetof(struct submit_opts, count), "N",
      "run it N times; ALIQUOT_ARRAY_INDEX is 0 to N-1 in them" },
    { 0, "wait", CLI_FLAG, offsetof(struct submit_opts, wait), NULL,
      "wait for its end, and exit as the script did" },
    { 0, "parsable", CLI_FLAG, offsetof(struct submit_opts, parsable), NULL, "print the id alone" },
    CLI_OPT_END,
};

/* A script on its way to a session. */
struct submit {
    struct cli *cli;
    const char *path;   /* as the user knows it */
    const char *name;   /* of the script alone, in the session, too */
    bool has_file;      /* it is no standard input */
    struct strbuf text; /* the script */
    struct batch_script script;
    struct slurm_options slurm;
    char gpus[64];                        /* "cuda.device=2" of the #SBATCH lines, or "" */
    struct submit_opts lines[2], *merged; /* of #SBATCH and #ALIQUOT; the command line's */
    struct strbuf command;
    char *project; /* of the session, if no option names one; NULL = unknown */
};

static void submit_done(struct submit *s)
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

static int submit_read(struct submit *s, int argc, char **argv, struct aq_error *err)
{
    bool is_input = argc == 0 || strcmp(argv[0], "-") == 0;
    int r;

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
                                    "%s: line %u: word %d is not UTF-8; iconv changes that",
                                    s->path, line->number, k + 1);
        if (!line->is_slurm && submit_parse(&s->lines[1], line->argc, line->argv, err) < 0)
            return aq_error_wrap(err, "%s: line %u", s->path, line->number);
    }
    return 0;
}

/* Whole GPUs are offered as devices or as shares: ask which there are. */
static int submit_name_gpus(struct submit *s, struct aq_error *err)
{
    static const char *const kinds[] = { ".device", ".shares" };
    const char *found = "cuda.device", *name;
    json_t *slots = NULL, *type;
    int r;

    if (!s->slurm.gpus)
        return 0;
    r = cli_call(s->cli, METHOD_GET, "/config/resource-slots", NULL, &slots, err);
    for (size_t i = AQ_COUNT(kinds); r == 0 && i-- > 0;)
        json_object_foreach(slots, name, type) {
            const char *dot = strchr(name, '.');

            if (dot && strcmp(dot, kinds[i]) == 0)
                found = name;
        }
    (void)snprintf(s->gpus, sizeof(s->gpus), "%s=%" PRId64, found, s->slurm.gpus);
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
    strbuf_addf(&text, "%s: line %u: --%s: ", s->path, origin->line, origin->name);
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
    int r = slurm_options_translate(&s->script, is_several, &s->slurm, err);

    if (r < 0)
        return aq_error_wrap(err, "%s", s->path);
    r = submit_name_gpus(s, err);
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

    if (!given || name != s->lines[0].spec.name || (name && strcmp(name, given) == 0))
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

static void submit_note(const struct submit *s)
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
    if (s->script.command)
        cli_note(s->cli, "%s: line %u: no %s is in the session; the script starts its programs",
                 s->path, s->script.command_line, s->script.command);
}

/* ---- what wins ---- */

/* "cuda" of "cuda.shares=0.5": the slots of one kind of device stand for each other. */
static size_t submit_kind_len(const char *resource)
{
    return strcspn(resource, ".=,");
}

static bool submit_names_kind(const struct cli_list *list, const char *kind, size_t len)
{
    for (size_t i = 0; i < list->count; i++)
        for (const char *at = list->items[i]; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
            if (submit_kind_len(at) == len && memcmp(at, kind, len) == 0)
                return true;
    return false;
}

/* Of weaker amounts those that the stronger ones do not name. */
static void submit_merge_resources(struct submit *s, struct cli_list *strong,
                                   const struct cli_list *weak)
{
    const size_t named = strong->count;

    for (size_t i = 0; i < weak->count; i++)
        for (const char *at = weak->items[i]; *at;) {
            size_t len = strcspn(at, ",");
            const struct cli_list given = { strong->items, named, named };

            if (!submit_names_kind(&given, at, submit_kind_len(at)))
                cli_list_add(strong, arena_strndup(&s->script.arena, at, len));
            at += len + (at[len] == ',');
        }
}

/* Weaker variables first: of two with one name the later counts. */
static void submit_merge_environ(struct cli_list *strong, const struct cli_list *weak)
{
    if (weak->count == 0)
        return;
    vec_grow(&strong->items, &strong->cap, strong->count + weak->count, sizeof(*strong->items));
    memmove(strong->items + weak->count, strong->items, strong->count * sizeof(*strong->items));
    memcpy(strong->items, weak->items, weak->count * sizeof(*strong->items));
    strong->count += weak->count;
}

/* Give 'strong' what only 'weak' says. */
static void submit_merge(struct submit *s, struct submit_opts *strong,
                         const struct submit_opts *weak)
{
    for (const struct cli_opt *o = submit_opts; o->name; o++) {
        void *to = (char *)strong + o->offset;
        const void *from = (const char *)weak + o->offset;

        if (o->type == CLI_FLAG)
            *(bool *)to |= *(const bool *)from;
        else if (o->type == CLI_STR && !*(const char **)to)
            *(const char **)to = *(const char *const *)from;
        else if ((o->type == CLI_INT || o->type == CLI_DURATION) && !((struct cli_int *)to)->is_set)
            *(struct cli_int *)to = *(const struct cli_int *)from;
        else if (o->offset == offsetof(struct submit_opts, spec.resources))
            submit_merge_resources(s, to, from);
        else if (o->offset == offsetof(struct submit_opts, spec.environ))
            submit_merge_environ(to, from);
        else if (o->type == CLI_LIST && !((struct cli_list *)to)->count)
            submit_merge_environ(to, from);
    }
}

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

static int submit_write_command(struct submit *s, int argc, char **argv, struct aq_error *err)
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

/* Jobs of Slurm may share a name; sessions that live may not. */
static int submit_create(struct submit *s, json_t **ret, struct aq_error *err)
{
    bool may_rename = s->merged->spec.name && s->merged->spec.name == s->lines[0].spec.name;
    struct spec_opts spec = s->merged->spec;
    char *argv[] = { s->command.data, NULL };
    AQ_CLEANUP(aq_freep) char *made = submit_make_name(s);
    AQ_CLEANUP(aq_freep) char *other = NULL;
    struct create_request request = { &spec, true, (size_t)s->merged->count.value, 1, argv, false };
    struct uuid chance = uuid_random();
    int r;

    spec.name = made;
    r = create_all(s->cli, &request, ret, err);
    if (r != -EEXIST || !may_rename || request.is_partly_done)
        return r;
    other = aq_format("%.*s-%02x%02x%02x", SESSION_NAME_MAX - JOB_CHANCE_MAX - JOB_INDEX_MAX, made,
                      chance.bytes[0], chance.bytes[1], chance.bytes[2]);
    spec.name = other;
    request.spec = &spec;
    s->cli->hint[0] = '\0';
    return create_all(s->cli, &request, ret, err);
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

static int submit_prepare(struct submit *s, int argc, char **argv, struct aq_error *err)
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
    return r == 0 ? submit_write_command(s, argc, argv, err) : r;
}

static int submit_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct submit_opts *opts = data;
    struct submit s = { .cli = cli, .text = STRBUF_INIT, .command = STRBUF_INIT, .merged = opts };
    json_t *created = NULL;
    int r = submit_prepare(&s, argc, argv, err);

    if (r == 0) {
        submit_note(&s);
        r = submit_create(&s, &created, err);
        if (r < 0)
            r = submit_blame(&s, err);
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
