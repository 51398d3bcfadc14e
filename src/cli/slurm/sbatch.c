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
        output = "slurm-%j.out";
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

/* A job's number becomes the id of its session. */
static int sbatch_resolve_after(struct sbatch *s, struct aq_error *err)
{
    struct cli_list *after = &s->opts.spec.after;

    for (size_t i = 0; i < after->count; i++) {
        const char *colon = strrchr(after->items[i], ':');
        const char *number = colon ? colon + 1 : after->items[i];
        AQ_CLEANUP(job_list_done) struct job_list list = { .rows = NULL };
        struct job_query query = { .ids = number, .must_exist = true, .has_ended = true };
        AQ_CLEANUP(aq_freep) char *text = NULL;
        int r;

        if (strspn(number, "0123456789") != strlen(number))
            continue;
        r = job_list_read(s->cli, &query, &list, err);
        if (r < 0)
            return aq_error_wrap(err, "Job dependency problem");
        text = aq_format("%.*s%s", (int)(number - after->items[i]), after->items[i],
                         json_string_value(json_object_get(list.jobs[0].row, "id")));
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
            r = session_get(s->cli, id ? id : "", &row, err);
        if (r == 0)
            strbuf_addf(&out, "%s%" PRId64 "\n", s->opts.parsable ? "" : "Submitted batch job ",
                        (int64_t)json_integer_value(json_object_get(row, "job_id")));
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
                                .slurm = { .is_sbatch = true },
                                .words = { .is_slurm = true, .argc = count, .argv = argv } };
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
