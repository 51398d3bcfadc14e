/* SPDX-License-Identifier: Apache-2.0 */
/* The whole program: reads the command line, runs the command, reports errors. */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "cli/account_tables.h"
#include "cli/announcement.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/help.h"
#include "cli/output/prose.h"
#include "cli/spelling.h"
#include "cli/welcome.h"
#include "http/problem.h"
#include "http/url.h"

const struct cli_opt cli_global_opts[] = {
    { 'o', "output", CLI_CHOICE, offsetof(struct cli_globals, format), OUTPUT_FORMATS,
      "format of the result" },
    { 0, "columns", CLI_STR, offsetof(struct cli_globals, columns), "NAME,...",
      "show these columns" },
    { 0, "sort", CLI_STR, offsetof(struct cli_globals, sort), "[-]NAME,...",
      "order of rows, e.g. status,-age" },
    { 0, "no-header", CLI_FLAG, offsetof(struct cli_globals, no_header), NULL,
      "no header line, no titles" },
    { 0, "color", CLI_CHOICE, offsetof(struct cli_globals, colour), "auto|always|never",
      "colours; auto = on a terminal" },
    { 'q', "quiet", CLI_FLAG, offsetof(struct cli_globals, quiet), NULL,
      "no notes and no progress; of lists the ids alone" },
    { 0, "endpoint", CLI_STR, offsetof(struct cli_globals, endpoint), "URL",
      "address of the manager" },
    { 0, "profile", CLI_STR, offsetof(struct cli_globals, profile), "PROFILE",
      "profile that 'aliquot login' wrote" },
    { 0, "owner", CLI_STR, offsetof(struct cli_globals, owner), "ACCESS-KEY",
      "act on sessions of this keypair (administrators)" },
    { 'h', "help", CLI_FLAG, offsetof(struct cli_globals, help), NULL, "explain the command" },
    CLI_OPT_END,
};

/* Options that all commands of other systems share. */
static const struct cli_opt app_foreign_opts[] = {
    { 0, "help", CLI_FLAG, offsetof(struct cli_globals, help), NULL, "explain the command" },
    CLI_OPT_END,
};

void cli_hint(struct cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(cli->hint, sizeof(cli->hint), fmt, args);
    va_end(args);
}

/* A line on standard error; what it quotes may come from anybody. */
static void AQ_PRINTF(1, 0) app_vsay(const char *fmt, va_list args)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf shown = STRBUF_INIT, line = STRBUF_INIT;

    strbuf_vaddf(&text, fmt, args);
    prose_localize(text.data, clock_realtime_usec(), &shown);
    utf8_write_printable(shown.data, shown.len, &line);
    strbuf_truncate(&shown, 0);
    prose_wrap(line.data, prose_terminal_width(STDERR_FILENO), &shown);
    strbuf_addc(&shown, '\n');
    (void)fputs(shown.data, stderr);
}

static void AQ_PRINTF(1, 2) app_say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    app_vsay(fmt, args);
    va_end(args);
}

void cli_note(const struct cli *cli, const char *fmt, ...)
{
    va_list args;

    if (cli->globals.quiet)
        return;
    va_start(args, fmt);
    app_vsay(fmt, args);
    va_end(args);
}

/* Bytes of one of our colours at the front: ESC [ N m, of a digit or a colour of text. */
static size_t app_colour_size(const char *text)
{
    size_t digits = strncmp(text, "\033[", 2) == 0 ? strspn(text + 2, "0123456789") : 0;
    bool is_ours = digits == 1 ? strchr("012", text[2]) != NULL : digits == 2 && text[2] == '3';

    return is_ours && text[2 + digits] == 'm' ? 3 + digits : 0;
}

/* For a terminal, whatever the text quotes: what is not shown is replaced, but for our colours. */
static void app_write_for_terminal(const struct strbuf *text, struct strbuf *out)
{
    const char *at = text->data, *end = text->data + text->len;

    while (at < end) {
        const char *escape = memchr(at, '\033', (size_t)(end - at));
        size_t colour = escape ? app_colour_size(escape) : 0;

        escape = escape ? escape + !colour : end;
        utf8_write_printable(at, (size_t)(escape - at), out);
        strbuf_add(out, escape, colour);
        at = escape + colour;
    }
}

int cli_print(const struct strbuf *text, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf shown = STRBUF_INIT;
    int r;

    if (isatty(STDOUT_FILENO)) {
        app_write_for_terminal(text, &shown);
        text = &shown;
    }
    r = fs_write_all(STDOUT_FILENO, text->data, text->len);
    if (r == -EPIPE)
        exit(CLI_EXIT_BROKEN_PIPE); /* the reader has enough, as 'head' has */
    return r < 0 ? aq_fail(err, -r, "cannot write the result: %s", strerror(-r)) : 0;
}

/* ---- one run ---- */

static void output_init(struct output *o, const struct cli_globals *g)
{
    bool is_terminal = isatty(STDOUT_FILENO);
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    (void)setlocale(LC_CTYPE, "");
    *o = (struct output){
        .format = g->format ? (enum output_format)(g->format - 1) : OUTPUT_TABLE,
        .columns = g->columns,
        .sort = g->sort,
        .no_header = g->no_header,
        .colour = g->colour == 2
                  || (g->colour != 3 && is_terminal && !(no_colour && no_colour[0])
                      && !(term && strcmp(term, "dumb") == 0)),
        .ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
        .now_usec = clock_realtime_usec(),
        .width = prose_terminal_width(STDOUT_FILENO),
    };
}

/* What usually helps with what the manager has answered. */
static const char *app_answer_hint(const struct aq_error *err, enum cli_exit status)
{
    if (strcmp(err->kind, "server-frozen") == 0)
        return "a superadmin ends this: aliquot admin unfreeze";
    if (status == CLI_EXIT_DENIED && strcmp(err->field, PROBLEM_FIELD_ROLE) == 0)
        return "see who you are: aliquot whoami; nodes that you may use: aliquot nodes";
    if (status == CLI_EXIT_DENIED && strcmp(err->kind, "generic-forbidden") != 0)
        return "see who you are: aliquot whoami; log in: aliquot login";
    if (status == CLI_EXIT_NOT_FOUND && strcmp(err->field, "session") == 0)
        return "see what there is: aliquot ps --all";
    if (status == CLI_EXIT_NOT_FOUND && strcmp(err->field, "agent instance") == 0)
        return "see what there is: aliquot agent ls";
    if (status == CLI_EXIT_NOT_FOUND && strcmp(err->field, "virtual folder") == 0)
        return "see what there is: aliquot folder ls";
    if (status == CLI_EXIT_NOT_FOUND && strcmp(err->field, "--resource-group") == 0)
        return "it does not exist, or you may not use it; those that you may use: aliquot nodes";
    return NULL;
}

/* Nobody listens on this machine, where a cluster could be. */
static bool app_lacks_cluster(const struct cli *cli, const struct aq_error *err)
{
    const char *endpoint = cli_config_get(&cli->config, SETTING_ENDPOINT);
    struct url url;

    return err->code == ECONNREFUSED && endpoint && url_parse(endpoint, &url, NULL) == 0
           && address_is_local(&url.address);
}

/* And otherwise, by what has failed: an errno alone does not tell, a file here may be missing or
 * unreadable as an object of the manager may be, and a pipe be broken as a connection.
 */
static const char *app_default_hint(const struct cli *cli, const struct aq_error *err,
                                    enum cli_exit status)
{
    if (err->kind && strcmp(err->kind, CLI_KIND_UNREACHABLE) == 0)
        return app_lacks_cluster(cli, err) ? "see where it looks: aliquot config show; start a "
                                             "cluster here: aliquot up --dev"
                                           : "see where it looks: aliquot config show";
    if (status == CLI_EXIT_USAGE)
        return "see: aliquot help";
    return err->kind && problem_find(err->kind) ? app_answer_hint(err, status) : NULL;
}

static void app_report_json(const struct aq_error *err, enum cli_exit status, const char *hint)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, clean = STRBUF_INIT;
    bool has_kind = err->kind && strcmp(err->kind, CLI_KIND_UNREACHABLE) != 0;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "error");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "code", has_kind ? err->kind : strerrorname_np(err->code));
    jsonw_member_str(&w, "message", err->text);
    if (err->field[0])
        jsonw_member_str(&w, "field", err->field);
    jsonw_member_str(&w, "hint", hint);
    jsonw_member_int(&w, "exit_status", status);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    utf8_write_json(out.data, out.len, &clean);
    (void)fprintf(stderr, "%s\n", clean.data);
}

/* Say it; returns the exit status. */
static int app_report(const struct cli *cli, const struct aq_error *err)
{
    bool is_foreign = cli->verb && (cli->verb->flags & CLI_OWN_OPTIONS);
    enum cli_exit status = cli_exit_for(err);
    const char *hint = cli->hint[0] ? cli->hint : app_default_hint(cli, err, status);
    bool is_usage = status == CLI_EXIT_USAGE && cli->verb && !cli->hint[0];
    int format = cli->globals.format - 1;

    if (status == CLI_EXIT_OK)
        status = CLI_EXIT_FAILURE;
    if (cli->verb && (cli->verb->flags & CLI_RUNS_PROGRAM) && status != CLI_EXIT_INTERRUPTED)
        status = CLI_EXIT_OWN;
    if (format == OUTPUT_JSON || format == OUTPUT_JSONL || format == OUTPUT_YAML) {
        app_report_json(err, status, hint);
        return status;
    }
    if (is_foreign) {
        app_say("%s: error: %s", strrchr(cli->verb->name, ' ') + 1, err->text);
        return CLI_EXIT_FAILURE;
    }
    app_say("aliquot: %s", err->text);
    if (is_usage)
        app_say("  see: aliquot %s --help", cli->verb->name);
    else if (hint)
        app_say("  %s", hint);
    return status;
}

/* Is this "--NAME", or "-LETTER", an option of the verb? */
static bool app_has_option(const struct cli_verb *verb, const char *option)
{
    if (option[0] == '-' && option[1] == '-')
        return cli_opt_find(verb->opts, option + 2, strlen(option + 2)) != NULL;
    for (const struct cli_opt *o = verb->opts; o && o->name; o++)
        if (o->letter && o->letter == option[1])
            return true;
    return false;
}

/* The commands beside this one that have the option: "service create, service deploy". */
static void app_write_owners(const struct cli_verb *verb, const char *option, struct strbuf *out)
{
    const char *action = strrchr(verb->name, ' ');
    size_t noun = action ? (size_t)(action - verb->name) + 1 : 0;

    for (const struct cli_verb *const *v = cli_verbs; noun && *v; v++)
        if (*v != verb && strncmp((*v)->name, verb->name, noun) == 0
            && !strchr((*v)->name + noun, ' ') && !((*v)->flags & CLI_HIDDEN)
            && app_has_option(*v, option))
            strbuf_addf(out, "%s%s", out->len ? ", " : "", (*v)->name);
}

/* An option that could not be read: which of ours it is, or which commands have it. */
static void app_explain_option(struct cli *cli, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf owners = STRBUF_INIT;
    bool makes_sessions = cli_opt_find(cli->verb->opts, "resource", strlen("resource"));
    const char *ours = makes_sessions ? spelling_find_option(err->field) : NULL;
    char *guess = strstr(err->text, "; did you mean");

    if (!ours && strncmp(err->text, "unknown option", strlen("unknown option")) == 0)
        app_write_owners(cli->verb, err->field, &owners);
    if (!ours && !owners.len)
        return;
    if (guess)
        *guess = '\0';
    if (ours)
        cli_hint(cli, "instead of %s: %s", err->field, ours);
    else
        cli_hint(cli, "%s is an option of: %s", err->field, owners.data);
}

static int app_check_args(struct cli *cli, int argc, char **argv, struct aq_error *err)
{
    const struct cli_verb *verb = cli->verb;

    if (argc < verb->min_args && strcmp(verb->name, "session stats") == 0)
        cli_hint(cli, "what all of them use: aliquot top; which there are: aliquot ps");
    else if (argc < verb->min_args && strstr(verb->args, "SESSION"))
        cli_hint(cli, "which there are: aliquot ps --all");
    if (argc < verb->min_args)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "something is missing: aliquot %s %s",
                            verb->name, verb->args);
    if (verb->max_args >= 0 && argc > verb->max_args)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "unexpected argument '%.60s': aliquot %s %s", argv[verb->max_args],
                            verb->name, verb->args);
    return 0;
}

static int app_print_help(const struct cli_verb *verb, int noun_words, char **argv,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (verb)
        help_verb(verb, &out);
    else if (noun_words)
        help_noun(noun_words, argv, &out);
    else
        help_overview(&out);
    return cli_print(&out, err);
}

static int app_run_verb(struct cli *cli, int argc, char **argv, struct aq_error *err)
{
    const struct cli_verb *verb = cli->verb;
    AQ_CLEANUP(aq_freep) void *opts = aq_alloc(verb->opts_size + 1);
    bool is_foreign = verb->flags & CLI_OWN_OPTIONS;
    struct cli_opt_set sets[] = {
        { verb->opts, opts }, { is_foreign ? app_foreign_opts : cli_global_opts, &cli->globals }
    };
    int count = argc, r = 0;

    if (!is_foreign || verb->opts)
        r = cli_opts_parse(sets, AQ_COUNT(sets), verb->flags & CLI_STOP_AT_FIRST, argc, argv,
                           &count, err);
    if (r < 0)
        app_explain_option(cli, err);
    if (r == 0 && cli->globals.help) {
        r = app_print_help(verb, 0, NULL, err);
    } else {
        if (r == 0)
            r = app_check_args(cli, count, argv, err);
        if (r == 0 && !(verb->flags & CLI_NO_CONFIG))
            r = cli_config_load(&cli->config, cli->globals.endpoint, cli->globals.profile, err);
        if (r == 0) {
            output_init(&cli->output, &cli->globals);
            r = verb->run(cli, opts, count, argv, err);
            if (r < 0 && !(verb->flags & (CLI_NO_CONFIG | CLI_LOGS_IN)))
                welcome_explain(cli, err);
            if (r < 0 && err->kind && strcmp(err->kind, "server-frozen") == 0)
                announcement_note(cli); /* it may say why */
        }
    }
    cli_opts_done(verb->opts, opts);
    return r;
}

/* No command: the way to a cluster for one who has none, else the commands. */
static int app_welcome(struct cli *cli, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r = cli_config_load(&cli->config, cli->globals.endpoint, cli->globals.profile, err);

    if (r < 0)
        return r;
    if (welcome_is_stranger(cli))
        welcome_write(cli, &out);
    else
        help_groups(&out);
    return cli_print(&out, err);
}

static int app_dispatch(struct cli *cli, int argc, char **argv, struct aq_error *err)
{
    struct cli_opt_set globals = { cli_global_opts, &cli->globals };
    int words, r;

    if (argc && strcmp(argv[0], "--version") == 0)
        return puts("aliquot " ALIQUOT_VERSION) < 0 ? aq_fail_errno(err, "write") : 0;
    r = cli_opts_parse(&globals, 1, true, argc, argv, &argc, err);
    if (r < 0)
        return r;
    if (argc == 0 && !cli->globals.help)
        return app_welcome(cli, err);
    cli->verb = verb_find(argc, argv, &words);
    if (cli->verb)
        return app_run_verb(cli, argc - words, argv + words, err);
    words = verb_noun_words(argc, argv);
    if (words == argc || (words && strcmp(argv[words], "--help") == 0))
        return app_print_help(NULL, words, argv, err);
    return verb_fail_unknown(argc, argv, err);
}

/* A standard descriptor that is closed would be the next file that is opened. */
static void app_open_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR); /* closed ones first; programs inherit them */
    while (fd >= 0 && fd <= STDERR_FILENO);
    aq_closep(&fd);
}

/* By this name it is used in place of Backend.AI's program, whose failures all are 1. */
static bool app_is_backendai(const char *program)
{
    const char *slash = strrchr(program, '/');

    return strcmp(slash ? slash + 1 : program, "backend.ai") == 0;
}

/* The command of Slurm by whose name the program was called, or NULL. */
static const struct cli_verb *app_find_foreign(const char *program)
{
    const char *slash = strrchr(program, '/');
    char *words[] = { (char *)"slurm", (char *)(slash ? slash + 1 : program) };
    int count;
    const struct cli_verb *verb = verb_find((int)AQ_COUNT(words), words, &count);

    return verb && count == 2 && (verb->flags & CLI_OWN_OPTIONS) ? verb : NULL;
}

int cli_main(int argc, char **argv)
{
    struct cli cli = { .verb = app_find_foreign(argv[0]) };
    struct aq_error err = { 0 };
    int r;

    app_open_standard();
    account_tables_complete();
    (void)mallopt(M_MXFAST, 0); /* large lists: merging what was freed late costs more */
    r = cli.verb ? app_run_verb(&cli, argc - 1, argv + 1, &err)
                 : app_dispatch(&cli, argc - 1, argv + 1, &err);
    if (r < 0)
        r = app_report(&cli, &err);
    if (r > CLI_EXIT_USAGE && r < CLI_EXIT_OWN && app_is_backendai(argv[0])
        && !(cli.verb && (cli.verb->flags & CLI_RUNS_PROGRAM)))
        r = CLI_EXIT_FAILURE;
    cli_client_free(cli.client);
    cli_config_done(&cli.config);
    return r;
}
