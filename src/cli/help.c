/* SPDX-License-Identifier: Apache-2.0 */
/* Usage, help and completion, made from the table of commands. */
#include "cli/help.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "cli/output/prose.h"
#include "cli/spelling.h"
#include "cli/verbs.h"

#define VERBS_MAX 128
#define HELP_WIDTH 90 /* longer lines are hard to read */

/* ---- finding commands ---- */

int verb_match_words(const char *name, int argc, char *const argv[], bool *ret_all)
{
    for (int words = 0;; words++) {
        size_t len = strcspn(name, " ");

        *ret_all = false;
        if (words == argc || strlen(argv[words]) != len || memcmp(name, argv[words], len) != 0)
            return words;
        name += len;
        if (*name == '\0') {
            *ret_all = true;
            return words + 1;
        }
        name++;
    }
}

const struct cli_verb *verb_find(int argc, char *const argv[], int *ret_words)
{
    bool all;

    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        *ret_words = verb_match_words((*v)->name, argc, argv, &all);
        if (all)
            return *v;
    }
    return spelling_find(argc, argv, ret_words);
}

int verb_noun_words(int argc, char *const argv[])
{
    int most = 0;
    bool all;

    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        most = AQ_MAX(most, verb_match_words((*v)->name, argc, argv, &all));
    return most;
}

const char *verb_next_word(const struct cli_verb *verb, int words, char *const argv[],
                           size_t *ret_len)
{
    const char *name = verb->name;
    bool all;

    if (verb_match_words(name, words, argv, &all) < words || all)
        return NULL;
    for (int i = 0; i < words; i++)
        name += strcspn(name, " ") + 1;
    *ret_len = strcspn(name, " ");
    return name;
}

/* argv[0 .. words) with a blank after each. */
static void help_write_words(struct strbuf *out, int words, char *const argv[])
{
    for (int i = 0; i < words; i++)
        strbuf_addf(out, "%.40s ", argv[i]);
}

/* Words of another program: what to type instead. */
static int help_verb_fail_foreign(int argc, char *const argv[], struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf theirs = STRBUF_INIT;
    int words;
    const char *ours = spelling_suggest(argc, argv, &words);
    const char *instead = spelling_find_missing(argv[0]);

    if (instead)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "there is no command '%s' yet: %s",
                            argv[0], instead);
    if (!ours)
        return 0;
    help_write_words(&theirs, words, argv);
    strbuf_truncate(&theirs, theirs.len - 1);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "there is no command '%s'; did you mean 'aliquot %s'?", theirs.data, ours);
}

int verb_fail_unknown(int argc, char *const argv[], struct aq_error *err)
{
    int words = AQ_MIN(verb_noun_words(argc, argv), argc - 1);
    struct suggest suggest = suggest_for(argv[words], strlen(argv[words]));
    AQ_CLEANUP(strbuf_donep) struct strbuf noun = STRBUF_INIT;
    char candidates[VERBS_MAX][32];
    size_t count = 0, len;
    int r = help_verb_fail_foreign(argc, argv, err);

    if (r < 0)
        return r;
    help_write_words(&noun, words, argv);
    for (const struct cli_verb *const *v = cli_verbs; *v && count < VERBS_MAX; v++) {
        const char *word = verb_next_word(*v, words, argv, &len);

        if (!word || ((*v)->flags & CLI_HIDDEN))
            continue;
        (void)snprintf(candidates[count], sizeof(candidates[count]), "%.*s", (int)len, word);
        suggest_offer(&suggest, candidates[count++]);
    }
    if (suggest.best)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "there is no command '%s%.40s'; did you mean 'aliquot %s%s'?",
                            noun.data, argv[words], noun.data, suggest.best);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "there is no command '%s%.40s'", noun.data,
                        argv[words]);
}

/* ---- help ---- */

/* The rest of a line, whose text begins at 'margin' and goes on there in the next lines. */
static void help_write_text(struct strbuf *out, size_t margin, const char *text)
{
    prose_wrap_behind(text, margin, prose_terminal_width(STDOUT_FILENO), out);
    strbuf_addc(out, '\n');
}

/* Lines of a paragraph are joined and broken for the terminal; those that begin with a blank, as
 * of tables, stay lines of their own.
 */
static void help_write_details(struct strbuf *out, const char *details)
{
    int width = AQ_MIN(prose_terminal_width(STDOUT_FILENO), HELP_WIDTH);
    AQ_CLEANUP(strbuf_donep) struct strbuf joined = STRBUF_INIT;

    for (const char *line = details, *end; *line; line = *end ? end + 1 : end) {
        bool is_prose = *line != ' ' && *line != '\n';

        end = line + strcspn(line, "\n");
        strbuf_add(&joined, line, (size_t)(end - line));
        if (*end)
            strbuf_addc(&joined, width && is_prose && end[1] != ' ' && end[1] != '\n' ? ' ' : '\n');
    }
    prose_wrap(joined.data, width, out);
    strbuf_addc(out, '\n');
}

/* Several commands of a deeper noun as one line: "admin user ls, create, set".
 * Returns the last of them.
 */
static const struct cli_verb *const *help_write_group(struct strbuf *out,
                                                      const struct cli_verb *const *v)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf names = STRBUF_INIT;
    size_t len = (size_t)(strrchr((*v)->name, ' ') - (*v)->name) + 1;

    strbuf_adds(&names, (*v)->name);
    while (v[1] && strncmp(v[1]->name, v[0]->name, len) == 0)
        strbuf_addf(&names, ", %s", (*++v)->name + len);
    strbuf_adds(out, "  ");
    help_write_text(out, 2 + len, names.data);
    return v;
}

/* 'noun' with a blank at its end, or "" for the commands of one word. */
static void help_write_summaries(struct strbuf *out, const char *title, const char *noun)
{
    size_t len = strlen(noun);

    strbuf_addf(out, "\n%s:\n", title);
    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        if (strncmp((*v)->name, noun, len) != 0 || ((*v)->flags & CLI_HIDDEN))
            continue;
        if (!strchr((*v)->name + len, ' ')) {
            strbuf_addf(out, "  %-20s ", (*v)->name);
            help_write_text(out, 23, (*v)->summary);
        } else if (len) {
            v = help_write_group(out, v);
        }
    }
}

void help_groups(struct strbuf *out)
{
    strbuf_adds(out, "Usage: aliquot COMMAND [OPTIONS] [ARGS]\n\n"
                     "Sessions with exact shares of CPUs, memory and GPUs.\n\n"
                     "  start work      run, submit, notebook, session create\n"
                     "  follow it       ps, logs, top, session why, session info\n"
                     "  enter it        exec, session attach, ssh, cp, port-forward, app\n"
                     "  end it          rm\n"
                     "  keep files      folder create, folder cp, folder ls\n"
                     "  see resources   nodes, image ls, fair-share\n"
                     "  log in          login, whoami, profile ls, profile use, logout\n"
                     "  a cluster here  up, doctor\n"
                     "  administration  agent ls, admin user ls, admin resource-group ls\n\n"
                     "Begin with:\n"
                     "  aliquot run -r cpu=1 -r mem=1g -- echo hello\n\n"
                     "All commands: aliquot help. One command: aliquot COMMAND --help.\n");
}

void help_overview(struct strbuf *out)
{
    strbuf_adds(out, "Usage: aliquot COMMAND [OPTIONS] [ARGS]\n\n"
                     "Sessions with exact shares of CPUs, memory and GPUs.\n\n"
                     "Begin with:\n"
                     "  aliquot up --dev                     a whole cluster on this machine\n"
                     "  aliquot login --dev                  log in to it\n"
                     "  aliquot run -r cpu=1 -r mem=1g -- echo hello\n");
    help_write_summaries(out, "Commands", "");
    help_write_summaries(out, "Sessions", "session ");
    help_write_summaries(out, "SSH keys", "ssh-key ");
    help_write_summaries(out, "Agents", "agent ");
    help_write_summaries(out, "Managers", "manager ");
    help_write_summaries(out, "Administration", "admin ");
    help_write_summaries(out, "Profiles", "profile ");
    help_write_summaries(out, "Configuration", "config ");
    strbuf_adds(out, "\nMore: aliquot COMMAND --help; aliquot help TOPIC, with the topics\n ");
    for (const char *const *t = help_topics; *t; t++)
        strbuf_addf(out, " %s", *t);
    strbuf_addc(out, '\n');
}

void help_noun(int words, char *const argv[], struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf noun = STRBUF_INIT;

    for (int i = 0; i < words; i++)
        strbuf_addf(&noun, "%s ", argv[i]);
    strbuf_addf(out, "Usage: aliquot %s... [OPTIONS] [ARGS]\n", noun.data);
    help_write_summaries(out, "Commands", noun.data);
}

static void help_write_options(const char *title, const struct cli_opt *opts, struct strbuf *out)
{
    strbuf_addf(out, "\n%s:\n", title);
    for (; opts->name; opts++) {
        size_t start = out->len, width;

        if (opts->letter)
            strbuf_addf(out, "  -%c, --%s", opts->letter, opts->name);
        else
            strbuf_addf(out, "      --%s", opts->name);
        if (opts->arg)
            strbuf_addf(out, " %s", opts->arg);
        width = out->len - start;
        if (width > 30)
            strbuf_addf(out, "\n%32s", "");
        else
            strbuf_addf(out, "%*s", (int)(32 - width), "");
        help_write_text(out, 32, opts->help);
    }
}

void help_verb(const struct cli_verb *verb, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "aliquot %s [OPTIONS]%s%s", verb->name, verb->args[0] ? " " : "",
                verb->args);
    strbuf_adds(out, "Usage: ");
    help_write_text(out, strlen("Usage: "), line.data);
    strbuf_addc(out, '\n');
    strbuf_clear(&line);
    strbuf_addf(&line, "%s.", verb->summary);
    help_write_text(out, 0, line.data);
    if (verb->examples) {
        strbuf_adds(out, "\nExamples:\n");
        for (const char *at = verb->examples; *at;) {
            size_t len = strcspn(at, "\n");

            strbuf_addf(out, "  %.*s\n", (int)len, at);
            at += len + (at[len] != '\0');
        }
    }
    if (verb->details) {
        strbuf_addc(out, '\n');
        help_write_details(out, verb->details);
    }
    if (verb->opts)
        help_write_options("Options", verb->opts, out);
    help_write_options("Options of every command", cli_global_opts, out);
}

/* ---- topics ---- */

const char *const help_topics[] = { "exit-codes", "environment", "output",
                                    "resources",  "other-names", NULL };

static void help_topic_exit_codes(struct strbuf *out)
{
    strbuf_adds(out, "Exit statuses of aliquot:\n\n");
    for (const struct cli_exit_status *s = cli_exit_statuses; s->meaning; s++) {
        strbuf_addf(out, "  %3d  ", (int)s->status);
        help_write_text(out, 7, s->meaning);
    }
    strbuf_adds(out, "\n'aliquot run' and 'aliquot session wait' otherwise exit as the session's\n"
                     "program did; 128+N stands for its end by signal N.\n");
}

static void help_topic_environment(struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf meaning = STRBUF_INIT;

    strbuf_adds(out, "A setting comes from the first of: option, ALIQUOT_ variable, BACKEND_\n"
                     "variable, profile, default. 'aliquot config show' tells which.\n\n");
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct cli_setting_info *s = &cli_settings[i];

        strbuf_addf(out, "  %s\n", s->env);
        if (s->backend_env)
            strbuf_addf(out, "  %s\n", s->backend_env);
        strbuf_addf(out, "%8s", "");
        strbuf_addf(&meaning, "%s%s%s", s->meaning, s->fallback ? "; default: " : "",
                    s->fallback ? s->fallback : "");
        help_write_text(out, 8, meaning.data);
        strbuf_clear(&meaning);
    }
    strbuf_adds(out, "  ALIQUOT_PROFILE\n        name of the profile that 'aliquot login' wrote\n"
                     "  NO_COLOR\n        no colours, unless --color=always\n");
}

static void help_topic_output(struct strbuf *out)
{
    strbuf_adds(out, "Results go to standard output, everything else to standard error.\n\n"
                     "  -o table   for reading; cut to the width of the terminal\n"
                     "  -o wide    the same with more columns\n"
                     "  -o json    one document; the members never change their names\n"
                     "  -o jsonl   a line of JSON for each row\n"
                     "  -o yaml    one document\n"
                     "  -o csv     RFC 4180, with a header line\n"
                     "  -o name    names only, for use in other commands\n\n"
                     "  --columns id,name,status    these, in this order\n"
                     "  --sort status,-created_at   by these; '-' turns the order round\n"
                     "  --no-header                 without header line or titles\n\n"
                     "States are green if they work, yellow on their way, red if they went wrong,\n"
                     "dim if they are over; the words say the same without colours.\n\n"
                     "With -o json, jsonl or yaml an error is one JSON object on standard error:\n"
                     "  {\"error\": {\"code\", \"message\", \"hint\", \"exit_status\"}}\n");
}

static void help_topic_resources(struct strbuf *out)
{
    strbuf_adds(out,
                "-r SLOT=AMOUNT asks for resources; repeat it or separate by commas:\n\n"
                "  -r cpu=2 -r mem=4g        two cores, 4 GiB\n"
                "  -r cpu=1,mem=512m         the same way in one word\n"
                "  -r cuda.shares=0.25       a quarter of a GPU, where agents offer shares\n\n"
                "Sizes take k, m, g, t (powers of 1024). Amounts are exact, with at most six\n"
                "decimals. 'aliquot agent ls' shows what there is, 'aliquot session why NAME'\n"
                "what a waiting session lacks.\n");
}

/* False if there is no such topic. */
static bool help_topic(const char *topic, struct strbuf *out)
{
    void (*const write[])(struct strbuf *) = { help_topic_exit_codes, help_topic_environment,
                                               help_topic_output, help_topic_resources,
                                               spelling_write_all };

    for (size_t i = 0; help_topics[i]; i++) {
        if (strcmp(topic, help_topics[i]) == 0) {
            write[i](out);
            return true;
        }
    }
    return false;
}

/* ---- commands ---- */

static int help_version_run(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)cli;
    (void)data;
    (void)argc;
    (void)argv;
    strbuf_adds(&out, "aliquot " ALIQUOT_VERSION "\n");
    return cli_print(&out, err);
}

const struct cli_verb verb_version = {
    .name = "version",
    .args = "",
    .summary = "Print the version of this program",
    .flags = CLI_NO_CONFIG,
    .run = help_version_run,
};

static int help_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct cli_verb *verb;
    int words;

    (void)cli;
    (void)data;
    if (argc == 0) {
        help_overview(&out);
    } else if ((verb = verb_find(argc, argv, &words))) {
        help_verb(verb, &out);
    } else if (verb_noun_words(argc, argv) == argc) {
        help_noun(argc, argv, &out);
    } else if (!help_topic(argv[0], &out)) {
        return verb_fail_unknown(argc, argv, err);
    }
    return cli_print(&out, err);
}

const struct cli_verb verb_help = {
    .name = "help",
    .args = "[COMMAND | TOPIC]",
    .summary = "Explain a command, or exit-codes, environment, output, resources, other-names",
    .examples = "aliquot help run\naliquot help exit-codes",
    .max_args = -1,
    .flags = CLI_NO_CONFIG,
    .run = help_run,
};
