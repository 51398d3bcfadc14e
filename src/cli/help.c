#include "cli/help.h"

#include <errno.h>
#include <string.h>

#include "base/suggest.h"

/* ---- finding commands ---- */

static size_t noun_len(const struct cli_verb *verb)
{
    const char *space = strchr(verb->name, ' ');

    return space ? (size_t)(space - verb->name) : 0;
}

static bool has_noun(const struct cli_verb *verb, const char *noun)
{
    size_t len = noun_len(verb);

    return len && strlen(noun) == len && memcmp(verb->name, noun, len) == 0;
}

bool verb_is_noun(const char *word)
{
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        if (has_noun(*v, word))
            return true;
    return false;
}

const struct cli_verb *verb_find(int argc, char *const argv[], int *ret_words)
{
    for (const struct cli_verb *const *v = cli_verbs; argc && *v; v++) {
        size_t len = noun_len(*v);

        if (!len && strcmp((*v)->name, argv[0]) == 0) {
            *ret_words = 1;
            return *v;
        }
        if (argc > 1 && has_noun(*v, argv[0]) && strcmp((*v)->name + len + 1, argv[1]) == 0) {
            *ret_words = 2;
            return *v;
        }
    }
    return NULL;
}

int verb_fail_unknown(int argc, char *const argv[], struct aq_error *err)
{
    bool in_noun = argc > 1 && verb_is_noun(argv[0]);
    const char *typed = argv[in_noun ? 1 : 0];
    struct suggest suggest = suggest_for(typed, strlen(typed));
    const char *noun = in_noun ? argv[0] : "", *space = in_noun ? " " : "";
    char first[32];

    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        size_t len = noun_len(*v);

        if ((*v)->flags & CLI_HIDDEN)
            continue;
        if (in_noun && has_noun(*v, noun))
            suggest_offer(&suggest, (*v)->name + len + 1);
        else if (!in_noun && !len)
            suggest_offer(&suggest, (*v)->name);
    }
    for (const struct cli_verb *const *v = cli_verbs; !in_noun && *v; v++) {
        struct suggest nouns = suggest_for(typed, strlen(typed));
        size_t len = AQ_MIN(noun_len(*v), sizeof(first) - 1);

        memcpy(first, (*v)->name, len);
        first[len] = '\0';
        suggest_offer(&nouns, first);
        if (len && nouns.best && nouns.distance < suggest.distance)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "there is no command '%.40s'; did you mean 'aliquot %s'?", typed,
                                first);
    }
    if (suggest.best)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "there is no command '%s%s%.40s'; did you mean 'aliquot %s%s%s'?", noun,
                            space, typed, noun, space, suggest.best);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "there is no command '%s%s%.40s'", noun, space,
                        typed);
}

/* ---- help ---- */

static void write_summaries(struct strbuf *out, const char *title, const char *noun)
{
    strbuf_addf(out, "\n%s:\n", title);
    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        bool shown = noun ? has_noun(*v, noun) : !noun_len(*v);

        if (shown && !((*v)->flags & CLI_HIDDEN))
            strbuf_addf(out, "  %-22s %s\n", (*v)->name, (*v)->summary);
    }
}

void help_overview(struct strbuf *out)
{
    strbuf_adds(out, "Usage: aliquot COMMAND [OPTIONS] [ARGS]\n\n"
                     "Sessions with exact shares of CPUs, memory and GPUs.\n\n"
                     "Begin with:\n"
                     "  aliquot up --dev                     a whole cluster on this machine\n"
                     "  aliquot login --dev                  log in to it\n"
                     "  aliquot run -r cpu=1 -r mem=1g -- echo hello\n");
    write_summaries(out, "Commands", NULL);
    write_summaries(out, "Sessions", "session");
    write_summaries(out, "Agents", "agent");
    write_summaries(out, "Administration", "admin");
    write_summaries(out, "Configuration", "config");
    strbuf_adds(out, "\nMore: aliquot COMMAND --help; aliquot help TOPIC, with the topics\n ");
    for (const char *const *t = help_topics; *t; t++)
        strbuf_addf(out, " %s", *t);
    strbuf_addc(out, '\n');
}

void help_noun(const char *noun, struct strbuf *out)
{
    strbuf_addf(out, "Usage: aliquot %s VERB [OPTIONS] [ARGS]\n", noun);
    write_summaries(out, "Commands", noun);
}

static void write_options(const char *title, const struct cli_opt *opts, struct strbuf *out)
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
            strbuf_addf(out, "\n%32s%s\n", "", opts->help);
        else
            strbuf_addf(out, "%*s%s\n", (int)(32 - width), "", opts->help);
    }
}

void help_verb(const struct cli_verb *verb, struct strbuf *out)
{
    strbuf_addf(out, "Usage: aliquot %s [OPTIONS]%s%s\n\n%s.\n", verb->name,
                verb->args[0] ? " " : "", verb->args, verb->summary);
    if (verb->examples) {
        strbuf_adds(out, "\nExamples:\n");
        for (const char *at = verb->examples; *at; ) {
            size_t len = strcspn(at, "\n");

            strbuf_addf(out, "  %.*s\n", (int)len, at);
            at += len + (at[len] != '\0');
        }
    }
    if (verb->details)
        strbuf_addf(out, "\n%s\n", verb->details);
    if (verb->opts)
        write_options("Options", verb->opts, out);
    write_options("Options of every command", cli_global_opts, out);
}

/* ---- topics ---- */

const char *const help_topics[] = { "exit-codes", "environment", "output", "resources", NULL };

static void topic_exit_codes(struct strbuf *out)
{
    strbuf_adds(out, "Exit statuses of aliquot:\n\n");
    for (const struct cli_exit_status *s = cli_exit_statuses; s->meaning; s++)
        strbuf_addf(out, "  %3d  %s\n", (int)s->status, s->meaning);
    strbuf_adds(out, "\n'aliquot run' and 'aliquot session wait' otherwise exit as the session's\n"
                     "program did; 128+N stands for its end by signal N.\n");
}

static void topic_environment(struct strbuf *out)
{
    strbuf_adds(out, "A setting comes from the first of: option, ALIQUOT_ variable, BACKEND_\n"
                     "variable, profile, default. 'aliquot config show' tells which.\n\n");
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct cli_setting_info *s = &cli_settings[i];

        strbuf_addf(out, "  %s\n", s->env);
        if (s->backend_env)
            strbuf_addf(out, "  %s\n", s->backend_env);
        strbuf_addf(out, "        %s%s%s\n", s->meaning, s->fallback ? "; default: " : "",
                    s->fallback ? s->fallback : "");
    }
    strbuf_adds(out, "  ALIQUOT_PROFILE\n        name of the profile that 'aliquot login' wrote\n"
                     "  NO_COLOR\n        no colours, unless --color=always\n");
}

static void topic_output(struct strbuf *out)
{
    strbuf_adds(out,
                "Results go to standard output, everything else to standard error.\n\n"
                "  -o table   for people; cut to the width of the terminal\n"
                "  -o wide    the same with more columns\n"
                "  -o json    one document; the members keep their names for ever\n"
                "  -o jsonl   a line of JSON for each row\n"
                "  -o yaml    one document\n"
                "  -o csv     RFC 4180, with a header line\n"
                "  -o name    names only, for use in other commands\n\n"
                "  --columns id,name,status    these, in this order\n"
                "  --sort status,-created_at   by these; '-' turns the order round\n"
                "  --no-header                 without header line or titles\n\n"
                "With -o json, jsonl or yaml an error is one JSON object on standard error:\n"
                "  {\"error\": {\"code\", \"message\", \"hint\", \"exit_status\"}}\n");
}

static void topic_resources(struct strbuf *out)
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

bool help_topic(const char *topic, struct strbuf *out)
{
    void (*const write[])(struct strbuf *) = { topic_exit_codes, topic_environment, topic_output,
                                               topic_resources };

    for (size_t i = 0; help_topics[i]; i++) {
        if (strcmp(topic, help_topics[i]) == 0) {
            write[i](out);
            return true;
        }
    }
    return false;
}
