/* SPDX-License-Identifier: Apache-2.0 */
/* "completion": words that complete a command line, and the scripts for shells that ask for them.
 */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "cli/complete_names.h"
#include "cli/complete_scripts.h"
#include "cli/help.h"
#include "cli/verbs.h"

/* What is offered so far. */
struct complete {
    struct strbuf *out;
    const char *typed;    /* what the offers begin with */
    struct strbuf prefix; /* of the same word, and no part of a name */
    const char *names_of; /* word of a usage: names of the manager belong here; NULL = none */
    size_t names_len;
    const char *session; /* that the command line names; NULL = none */
};

static void complete_offer(struct strbuf *out, const char *typed, const char *prefix,
                           const char *word, size_t len, const char *meaning)
{
    size_t prefix_len = strlen(prefix), typed_len = strlen(typed);

    if (typed_len > prefix_len + len || strncmp(typed, prefix, AQ_MIN(typed_len, prefix_len)) != 0
        || (typed_len > prefix_len
            && memcmp(typed + prefix_len, word, typed_len - prefix_len) != 0))
        return;
    strbuf_addf(out, "%s%.*s\t%s\n", prefix, (int)len, word, meaning);
}

static void complete_offer_options(struct strbuf *out, const char *typed,
                                   const struct cli_opt *opts)
{
    for (; opts && opts->name; opts++)
        complete_offer(out, typed, "--", opts->name, strlen(opts->name), opts->help);
}

static void complete_offer_choices(struct strbuf *out, const char *typed, const char *prefix,
                                   const struct cli_opt *opt)
{
    const char *word;
    size_t len;

    for (size_t i = 0; (len = cli_choice_word(opt->arg, i, &word)) > 0; i++)
        complete_offer(out, typed, prefix, word, len, opt->name);
}

/* The option that 'word' ("-o", "--output") is, if a value must follow it. */
static const struct cli_opt *complete_find_option(const struct cli_verb *verb, const char *word)
{
    const struct cli_opt *const tables[] = { verb ? verb->opts : NULL, cli_global_opts };

    for (size_t i = 0; i < AQ_COUNT(tables); i++) {
        for (const struct cli_opt *o = tables[i]; o && o->name; o++) {
            if (o->type == CLI_FLAG)
                continue;
            if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, o->name) == 0)
                return o;
            if (word[0] == '-' && o->letter && word[1] == o->letter && word[2] == '\0')
                return o;
        }
    }
    return NULL;
}

/* Words that may come next when argv[0 .. words) stand there. */
static void complete_offer_commands(struct strbuf *out, const char *typed, int words,
                                    char *const argv[])
{
    const char *before = "";
    size_t before_len = 0;

    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        size_t len;
        const char *word = verb_next_word(*v, words, argv, &len);

        if (!word || ((*v)->flags & CLI_HIDDEN)
            || (len == before_len && memcmp(before, word, len) == 0))
            continue;
        complete_offer(out, typed, "", word, len, word[len] ? "commands" : (*v)->summary);
        before = word;
        before_len = len;
    }
}

/* The part of the usage "SESSION SLOT=AMOUNT..." that stands for argument
 * 'index'; the last one, if it may be repeated, for all that follow.
 */
static const char *complete_usage_word(const char *usage, int index, size_t *ret_len)
{
    for (const char *at = usage; *at && *at != '|';) {
        size_t len;

        at += strspn(at, " [");
        len = strcspn(at, " []");
        if (len > 3 && strncmp(at + len - 3, "...", 3) == 0) {
            *ret_len = len - 3;
            return at;
        }
        if (index-- == 0) {
            *ret_len = len;
            return at;
        }
        at += len + strspn(at + len, "]. ");
    }
    return NULL;
}

/* How many arguments stand in argv[0 .. argc), which may hold options. */
static int complete_count_arguments(const struct cli_verb *verb, int argc, char *const argv[])
{
    int count = 0;

    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-' || argv[i][1] == '\0')
            count++;
        else if (complete_find_option(verb, argv[i]))
            i++;
    }
    return count;
}

/* The session of "logs SESSION" in argv[0 .. argc), which may hold options. */
static const char *complete_find_session(const struct cli_verb *verb, int argc, char *const argv[])
{
    int count = 0;

    for (int i = 0; i < argc; i++) {
        size_t len = 0;
        const char *word;

        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            i += complete_find_option(verb, argv[i]) != NULL;
            continue;
        }
        word = complete_usage_word(verb->args, count++, &len);
        if (word && len == strlen("SESSION") && strncmp(word, "SESSION", len) == 0)
            return argv[i];
    }
    return NULL;
}

/* The values of an option: choices, or names of the manager. In a list like
 * "cpu=1,mem=2g" what is before the last comma stays.
 */
static void complete_offer_values(struct complete *c, const struct cli_opt *opt, const char *typed)
{
    const char *comma = opt->type == CLI_LIST ? strrchr(typed, ',') : NULL;

    if (opt->type == CLI_CHOICE)
        complete_offer_choices(c->out, c->typed, c->prefix.data, opt);
    if (comma) {
        strbuf_add(&c->prefix, typed, (size_t)(comma + 1 - typed));
        typed = comma + 1;
    }
    if (opt->type != CLI_CHOICE && complete_names_has(opt->arg, strlen(opt->arg))) {
        c->names_of = opt->arg;
        c->names_len = strlen(opt->arg);
        c->typed = typed;
    }
}

/* "--image=py": the option, if what is typed holds its value. */
static const struct cli_opt *complete_find_attached(const struct cli_verb *verb, const char *typed,
                                                    const char **ret_value)
{
    const char *sign = strncmp(typed, "--", 2) == 0 ? strchr(typed, '=') : NULL;
    AQ_CLEANUP(aq_freep) char *word = sign ? aq_strndup(typed, (size_t)(sign - typed)) : NULL;

    if (!word)
        return NULL;
    *ret_value = sign + 1;
    return complete_find_option(verb, word);
}

static void complete_offer_arguments(struct complete *c, const struct cli_verb *verb, int words,
                                     int argc, char *const argv[])
{
    int index = complete_count_arguments(verb, argc - 1 - words, argv + words);
    size_t len = 0;
    const char *word = complete_usage_word(verb->args, index, &len);

    if (strcmp(verb->name, "completion") == 0) {
        for (size_t i = 0; i < AQ_COUNT(complete_shells); i++)
            complete_offer(c->out, c->typed, "", complete_shells[i].name,
                           strlen(complete_shells[i].name), "a shell");
    } else if (strcmp(verb->name, "help") == 0) {
        for (const char *const *t = help_topics; *t; t++)
            complete_offer(c->out, c->typed, "", *t, strlen(*t), "topic");
        complete_offer_commands(c->out, c->typed, argc - 2, argv + 1);
    } else if (word && complete_names_has(word, len)) {
        c->names_of = word;
        c->names_len = len;
    } else if (word && len == 7 && strncmp(word, "SETTING", 7) == 0) {
        for (int s = 0; s < SETTING_COUNT; s++)
            complete_offer(c->out, c->typed, "", cli_settings[s].key, strlen(cli_settings[s].key),
                           cli_settings[s].meaning);
    }
}

/* What belongs where the last word is. Names of the manager are left to the caller. */
static void complete_words(struct complete *c, int argc, char *const argv[])
{
    const struct cli_opt *opt;
    const struct cli_verb *verb;
    const char *value = NULL;
    int words = 0;

    c->typed = argv[argc - 1];
    verb = verb_find(argc - 1, argv, &words);
    c->session = verb ? complete_find_session(verb, argc - 1 - words, argv + words) : NULL;
    opt = argc > 1 ? complete_find_option(verb, argv[argc - 2]) : NULL;
    if (opt) {
        complete_offer_values(c, opt, c->typed);
        return;
    }
    opt = complete_find_attached(verb, c->typed, &value);
    if (opt) {
        strbuf_add(&c->prefix, c->typed, (size_t)(value - c->typed));
        complete_offer_values(c, opt, value);
        return;
    }
    if (!verb)
        complete_offer_commands(c->out, c->typed, argc - 1, argv);
    if (c->typed[0] == '-') {
        complete_offer_options(c->out, c->typed, verb ? verb->opts : NULL);
        complete_offer_options(c->out, c->typed, cli_global_opts);
    } else if (verb) {
        complete_offer_arguments(c, verb, words, argc, argv);
    }
}

/* ---- the command ---- */

static int complete_print_words(struct cli *cli, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct complete c = { .out = &out, .prefix = STRBUF_INIT };

    if (argc > 0)
        complete_words(&c, argc, argv);
    if (c.names_of) {
        AQ_CLEANUP(aq_freep) char *word = aq_strndup(c.names_of, c.names_len);

        complete_names(cli, word, c.session, c.prefix.data, c.typed, &out);
    }
    strbuf_done(&c.prefix);
    return cli_print(&out, err);
}

static int complete_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    for (size_t i = 0; i < AQ_COUNT(complete_shells); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        if (strcmp(argv[0], complete_shells[i].name) != 0)
            continue;
        strbuf_adds(&out, complete_shells[i].script);
        return cli_print(&out, err);
    }
    if (strcmp(argv[0], "words") == 0) {
        bool has_dashes = argc > 1 && strcmp(argv[1], "--") == 0;

        return complete_print_words(cli, argc - 1 - has_dashes, argv + 1 + has_dashes, err);
    }
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "there are scripts for bash, zsh and fish");
}

const struct cli_verb verb_completion = {
    .name = "completion",
    .args = "bash | zsh | fish",
    .summary = "Print a script that completes commands in the shell",
    .details = "Completes commands, options, their values, and all names that the manager knows:\n"
               "sessions, agents, images, slots, resource groups, accounts. The packages\n"
               "install these scripts.",
    .examples = "source <(aliquot completion bash)\n"
                "aliquot completion zsh > \"${fpath[1]}/_aliquot\"\n"
                "aliquot completion fish > ~/.config/fish/completions/aliquot.fish",
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_NO_CONFIG | CLI_STOP_AT_FIRST,
    .run = complete_run,
};
