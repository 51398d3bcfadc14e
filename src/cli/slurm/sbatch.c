/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch: "submit" with options of sbatch on the command line, the environment and the files. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "cli/client.h"
#include "cli/session/array.h"
#include "cli/session/create.h"
#include "cli/session/session.h"
#include "cli/slurm/job_list.h"
#include "cli/slurm/slurm.h"
#include "cli/submit/submit.h"
#include "cli/verbs.h"

#define FOLDER_TARGET "/home/work/" /* where a folder without a target is mounted */

/* What belongs to the command while it runs. */
struct sbatch {
    struct cli *cli;
    struct slurm_options options; /* of the command line */
    struct submit_opts opts;
    struct submit submit;
    struct job_place place;
    char *directory, *user; /* owned, of 'place' */
};

static void sbatch_done(struct sbatch *s)
{
    submit_done(&s->submit);
    cli_opts_done(submit_opts, &s->opts);
    slurm_options_done(&s->options);
    free(s->directory);
    free(s->user);
}

/* ---- the environment ---- */

/* Variables of the place where sbatch runs, and of other sessions and jobs. */
static bool sbatch_keeps_variable(const char *name, size_t len)
{
    static const char *const own[] = { "HOME",  "PWD",     "OLDPWD", "SHLVL", "_",
                                       "SHELL", "LOGNAME", "USER",   "TERM",  "XDG_RUNTIME_DIR" };
    static const char *const foreign[] = { "ALIQUOT_", "BACKEND_", "BACKENDAI_",
                                           "SLURM_",   "SSH_",     "BASH_FUNC_" };

    for (size_t i = 0; i < AQ_COUNT(own); i++)
        if (strlen(own[i]) == len && strncmp(name, own[i], len) == 0)
            return true;
    for (size_t i = 0; i < AQ_COUNT(foreign); i++)
        if (strncmp(name, foreign[i], strlen(foreign[i])) == 0)
            return true;
    return false;
}

/* All of it unless --export says otherwise; variables that an option sets win. */
static void sbatch_add_environment(struct sbatch *s)
{
    struct cli_list *environ_list = &s->opts.spec.environ;
    struct cli_list all = { NULL, 0, 0 };

    for (char **at = environ; *at; at++) {
        size_t len = strcspn(*at, "=");

        if (len && !sbatch_keeps_variable(*at, len) && utf8_is_valid(*at, strlen(*at)))
            cli_list_add(&all, *at);
    }
    for (size_t i = 0; i < environ_list->count; i++)
        cli_list_add(&all, environ_list->items[i]);
    free(environ_list->items);
    *environ_list = all;
}

/* ---- options in the environment ---- */

static const struct {
    const char *variable, *option;
    bool is_flag;
} sbatch_variables[] = {
    { "SBATCH_ACCOUNT", "account", false },
    { "SBATCH_ARRAY_INX", "array", false },
    { "SBATCH_CLUSTERS", "clusters", false },
    { "SBATCH_CONSTRAINT", "constraint", false },
    { "SBATCH_CONTAINER", "container", false },
    { "SBATCH_CPUS_PER_GPU", "cpus-per-gpu", false },
    { "SBATCH_ERROR", "error", false },
    { "SBATCH_EXPORT", "export", false },
    { "SBATCH_GPUS", "gpus", false },
    { "SBATCH_GPUS_PER_NODE", "gpus-per-node", false },
    { "SBATCH_GPUS_PER_TASK", "gpus-per-task", false },
    { "SBATCH_GRES", "gres", false },
    { "SBATCH_INPUT", "input", false },
    { "SBATCH_JOB_NAME", "job-name", false },
    { "SBATCH_MEM_PER_CPU", "mem-per-cpu", false },
    { "SBATCH_MEM_PER_GPU", "mem-per-gpu", false },
    { "SBATCH_MEM_PER_NODE", "mem", false },
    { "SBATCH_NO_REQUEUE", "no-requeue", true },
    { "SBATCH_OPEN_MODE", "open-mode", false },
    { "SBATCH_OUTPUT", "output", false },
    { "SBATCH_PARTITION", "partition", false },
    { "SBATCH_QOS", "qos", false },
    { "SBATCH_REQUEUE", "requeue", true },
    { "SBATCH_RESERVATION", "reservation", false },
    { "SBATCH_SIGNAL", "signal", false },
    { "SBATCH_TIMELIMIT", "time", false },
    { "SBATCH_TRES_PER_TASK", "tres-per-task", false },
    { "SBATCH_WAIT", "wait", true },
    { "SBATCH_WCKEY", "wckey", false },
};

/* Options of variables go before those of the command line, which win; both win over the script. */
static void sbatch_add_variables(struct sbatch *s, int count, char **argv)
{
    struct batch_line *words = &s->submit.words;

    words->is_slurm = true;
    words->argv = arena_array(&s->options.arena, AQ_COUNT(sbatch_variables) + (size_t)count + 1,
                              sizeof(*words->argv));
    for (size_t i = 0; i < AQ_COUNT(sbatch_variables); i++) {
        const char *value = getenv(sbatch_variables[i].variable);
        AQ_CLEANUP(aq_freep) char *word = NULL;

        if (!value || !*value)
            continue;
        word = aq_format(sbatch_variables[i].is_flag ? "--%s" : "--%s=%s",
                         sbatch_variables[i].option, value);
        words->argv[words->argc++] = arena_strdup(&s->options.arena, word);
    }
    for (int i = 0; i < count; i++)
        words->argv[words->argc++] = argv[i];
}

/* ---- the place ---- */

static bool sbatch_is_process(const struct sbatch *s)
{
    const struct spec_opts *spec = &s->opts.spec;
    const char *image = spec->image      ? spec->image
                        : spec->template ? NULL
                                         : cli_config_get(&s->cli->config, SETTING_IMAGE);

    return image && strcmp(image, IMAGE_OF_PROCESSES) == 0;
}

static bool sbatch_is_below(const char *path, const char *directory, size_t len)
{
    while (len > 1 && directory[len - 1] == '/')
        len--;
    return strncmp(path, directory, len) == 0 && (!path[len] || path[len] == '/');
}

/* Is it in a folder that is mounted: FOLDER[/PATH][:TARGET][:ro]? */
static bool sbatch_is_mounted(const struct sbatch *s, const char *path)
{
    const struct cli_list *mounts = &s->opts.spec.mounts;

    for (size_t i = 0; i < mounts->count; i++) {
        const char *mount = mounts->items[i], *colon = strchr(mount, ':');
        size_t len = colon ? strcspn(colon + 1, ":") : 0;
        AQ_CLEANUP(aq_freep) char *target = NULL;

        if (colon && colon[1] == '/')
            target = aq_format("%.*s", (int)len, colon + 1);
        else
            target = aq_format(FOLDER_TARGET "%.*s", (int)strcspn(mount, ":/"), mount);
        if (sbatch_is_below(path, target, strlen(target)))
            return true;
    }
    return false;
}

static bool sbatch_sees(const struct sbatch *s, const char *path)
{
    return sbatch_is_process(s) || sbatch_is_mounted(s, path);
}

static int sbatch_choose_directory(struct sbatch *s, struct aq_error *err)
{
    const char *given = s->submit.slurm.place.directory;
    char here[PATH_MAX];

    if (!getcwd(here, sizeof(here)))
        return aq_fail_errno(err, "find the working directory");
    s->directory = !given            ? aq_strdup(here)
                   : given[0] == '/' ? aq_strdup(given)
                                     : aq_format("%s/%s", here, given);
    if (!utf8_is_valid(s->directory, strlen(s->directory)))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "the working directory's name is not UTF-8; use --chdir");
    if (given || sbatch_sees(s, s->directory))
        s->place.directory = s->directory;
    s->place.must_have = given != NULL;
    return 0;
}

/* A file that the session cannot have is in its log, of what was written to it. */
static const char *sbatch_choose_file(const struct sbatch *s, const char *option, const char *path)
{
    if (!path || strcmp(path, "/dev/null") == 0
        || (path[0] == '/' ? sbatch_sees(s, path) : s->place.directory != NULL))
        return path;
    cli_note(s->cli,
             "sbatch: --%s=%s: the session does not have this directory; the output is kept with "
             "the session: aliquot logs; to have it, mount a folder there",
             option, path);
    return NULL;
}

static int sbatch_choose_place(struct sbatch *s, struct aq_error *err)
{
    const struct slurm_place *given = &s->submit.slurm.place;
    const struct passwd *me = getpwuid(geteuid());
    const char *output = given->output;
    int r = sbatch_choose_directory(s, err);

    if (r < 0)
        return r;
    if (given->open_mode && strcmp(given->open_mode, "append") != 0
        && strcmp(given->open_mode, "truncate") != 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--open-mode: expected append or truncate, not '%.60s'",
                            given->open_mode);
    if (!output && s->place.directory)
        output = s->opts.spec.array ? "slurm-%A_%a.out" : "slurm-%j.out";
    s->user = aq_strdup(me ? me->pw_name : "");
    s->place.user = s->user;
    s->place.is_appended = given->open_mode && strcmp(given->open_mode, "append") == 0;
    s->place.output = sbatch_choose_file(s, "output", output);
    s->place.error = sbatch_choose_file(s, "error", given->error);
    s->place.input = given->input ? given->input : NULL;
    s->submit.place = &s->place;
    return 0;
}

/* ---- dependencies ---- */

/* "12", "12_3" -> the id of the session or array, with "[3]" for an element. Caller frees. */
static int sbatch_resolve_number(struct sbatch *s, const char *number, char **ret,
                                 struct aq_error *err)
{
    AQ_CLEANUP(job_list_done) struct job_list list = { .rows = NULL };
    struct job_query query = { .ids = number, .must_exist = true, .has_ended = true };
    const char *index = strchr(number, '_'), *id;
    json_t *array;
    int r = job_list_read(s->cli, &query, &list, err);

    if (r < 0)
        return aq_error_wrap(err, "Job dependency problem");
    json_object_foreach(list.arrays, id, array)
        if (json_integer_value(json_object_get(array, "number")) == strtoll(number, NULL, 10)) {
            *ret = index ? aq_format("%s[%s]", id, index + 1) : aq_strdup(id);
            return 0;
        }
    *ret = aq_strdup(json_string_value(json_object_get(list.jobs[0].row, "id")));
    return 0;
}

/* Numbers of jobs become ids. */
static int sbatch_resolve_after(struct sbatch *s, struct aq_error *err)
{
    struct cli_list *after = &s->opts.spec.after;

    for (size_t i = 0; i < after->count; i++) {
        const char *colon = strrchr(after->items[i], ':');
        const char *number = colon ? colon + 1 : after->items[i];
        AQ_CLEANUP(aq_freep) char *id = NULL, *text = NULL;
        int r;

        if (strspn(number, "0123456789_") != strlen(number) || number[0] == '_')
            continue;
        if ((r = sbatch_resolve_number(s, number, &id, err)) < 0)
            return r;
        text = aq_format("%.*s%s", (int)(number - after->items[i]), after->items[i], id);
        after->items[i] = arena_strdup(&s->options.arena, text);
    }
    return 0;
}

/* ---- the command ---- */

static int sbatch_print(struct sbatch *s, const json_t *created, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const json_t *item;
    size_t i;
    int r = 0;

    json_array_foreach(created, i, item) {
        const char *id = json_string_value(json_object_get(item, "sessionId"));
        json_t *row = NULL;

        if (r == 0)
            r = s->opts.spec.array ? array_get(s->cli, id ? id : "", &row, err)
                                   : session_get(s->cli, id ? id : "", &row, err);
        if (r == 0)
            strbuf_addf(&out, "%s%" PRId64 "\n", s->opts.parsable ? "" : "Submitted batch job ",
                        (int64_t)json_integer_value(
                            json_object_get(row, s->opts.spec.array ? "number" : "job_id")));
        json_decref(row);
    }
    return r < 0 ? r : cli_print(&out, err);
}

static int sbatch_submit(struct sbatch *s, int argc, char **argv, struct aq_error *err)
{
    json_t *created = NULL;
    int r;

    s->cli->verb = &verb_submit; /* its options are those that a refusal names */
    r = submit_prepare(&s->submit, argc, argv, err);

    if (r == 0)
        r = sbatch_choose_place(s, err);
    if (r == 0)
        r = sbatch_resolve_after(s, err);
    if (r == 0)
        r = submit_write_command(&s->submit, argc, argv, err);
    /* only now, as a variable that the command sets is not set again if an option has it */
    if (r == 0 && sbatch_is_process(s) && !s->submit.slurm.exports_some)
        sbatch_add_environment(s);
    if (r == 0) {
        submit_note(&s->submit);
        r = submit_create(&s->submit, &created, err);
    }
    if (r == 0)
        r = sbatch_print(s, created, err);
    if (r == 0 && s->opts.wait)
        r = create_follow(s->cli, created, &s->opts.spec, 0, err);
    json_decref(created);
    s->cli->verb = &verb_slurm_sbatch;
    return r;
}

static bool sbatch_is_word(const char *word, const char *name, char letter)
{
    return (strncmp(word, "--", 2) == 0 && strcmp(word + 2, name) == 0)
           || (letter && word[0] == '-' && word[1] == letter && !word[2]);
}

static int sbatch_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(sbatch_done) struct sbatch s = { .cli = cli, .options = { .is_sbatch = true } };
    int count = 0, r;

    (void)data;
    if (argc == 1 && sbatch_is_word(argv[0], "version", 'V'))
        return slurm_print_version(err);
    if (argc == 1 && (sbatch_is_word(argv[0], "help", 'h') || sbatch_is_word(argv[0], "usage", 0)))
        return slurm_print_help(&verb_slurm_sbatch, err);
    r = slurm_options_count(argc, argv, &s.options, &count, err);
    if (r < 0)
        return r;
    s.submit = (struct submit){ .cli = cli,
                                .text = STRBUF_INIT,
                                .command = STRBUF_INIT,
                                .merged = &s.opts,
                                .wrap = s.options.place.wrap,
                                .slurm = { .is_sbatch = true } };
    sbatch_add_variables(&s, count, argv);
    count += count < argc && strcmp(argv[count], "--") == 0;
    if (s.submit.wrap && count < argc)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "Script arguments not permitted with --wrap option");
    return sbatch_submit(&s, argc - count, argv + count, err);
}

const struct cli_verb verb_slurm_sbatch = {
    .name = "slurm sbatch",
    .args = "[SCRIPT [ARG]...]",
    .summary = "Submit a job, as Slurm's sbatch does",
    .details = "Options are those of sbatch. What has no meaning here is named by a note, or is\n"
               "an error where the job would not be what was meant: see aliquot-submit(1).",
    .examples = "sbatch -c 4 --mem=8G -o out-%j.log train.sh\nsbatch --parsable --wrap 'make test'",
    .max_args = -1,
    .flags = SLURM_VERB_FLAGS,
    .run = sbatch_run,
};
