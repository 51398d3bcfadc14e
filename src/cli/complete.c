#include <string.h>

#include "cli/help.h"

static void offer(struct strbuf *out, const char *typed, const char *prefix, const char *word,
                  size_t len, const char *meaning)
{
    size_t prefix_len = strlen(prefix), typed_len = strlen(typed);

    if (typed_len > prefix_len + len ||
        strncmp(typed, prefix, AQ_MIN(typed_len, prefix_len)) != 0 ||
        (typed_len > prefix_len && memcmp(typed + prefix_len, word, typed_len - prefix_len) != 0))
        return;
    strbuf_addf(out, "%s%.*s\t%s\n", prefix, (int)len, word, meaning);
}

static void offer_options(struct strbuf *out, const char *typed, const struct cli_opt *opts)
{
    for (; opts && opts->name; opts++)
        offer(out, typed, "--", opts->name, strlen(opts->name), opts->help);
}

static void offer_choices(struct strbuf *out, const char *typed, const struct cli_opt *opt)
{
    const char *word;
    size_t len;

    for (size_t i = 0; (len = cli_choice_word(opt->arg, i, &word)) > 0; i++)
        offer(out, typed, "", word, len, opt->name);
}

/* The option that 'word' ("-o", "--output") is, if a value must follow it. */
static const struct cli_opt *option_wanting_value(const struct cli_verb *verb, const char *word)
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
static void offer_commands(struct strbuf *out, const char *typed, int words, char *const argv[])
{
    const char *before = "";
    size_t before_len = 0;

    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        size_t len;
        const char *word = verb_next_word(*v, words, argv, &len);

        if (!word || ((*v)->flags & CLI_HIDDEN) ||
            (len == before_len && memcmp(before, word, len) == 0))
            continue;
        offer(out, typed, "", word, len, word[len] ? "commands" : (*v)->summary);
        before = word;
        before_len = len;
    }
}

void complete_words(int argc, char *const argv[], struct strbuf *out, const char **ret_dynamic)
{
    const char *typed = argc ? argv[argc - 1] : NULL;
    const struct cli_opt *opt;
    const struct cli_verb *verb;
    int words = 0;

    *ret_dynamic = NULL;
    if (argc == 0)
        return;
    verb = verb_find(argc - 1, argv, &words);
    opt = argc > 1 ? option_wanting_value(verb, argv[argc - 2]) : NULL;
    if (opt) {
        if (opt->type == CLI_CHOICE)
            offer_choices(out, typed, opt);
        return;
    }
    if (!verb)
        offer_commands(out, typed, argc - 1, argv);
    if (typed[0] == '-') {
        offer_options(out, typed, verb ? verb->opts : NULL);
        offer_options(out, typed, cli_global_opts);
    } else if (verb && strstr(verb->args, "SESSION")) {
        *ret_dynamic = "session";
    } else if (verb && strstr(verb->args, "AGENT")) {
        *ret_dynamic = "agent";
    } else if (verb && strcmp(verb->name, "completion") == 0) {
        offer(out, typed, "", "bash", 4, "script for bash");
        offer(out, typed, "", "zsh", 3, "script for zsh");
    } else if (verb && strcmp(verb->name, "help") == 0) {
        for (const char *const *t = help_topics; *t; t++)
            offer(out, typed, "", *t, strlen(*t), "topic");
        offer_commands(out, typed, argc - 2, argv + 1);
    }
}

static const char bash_script[] =
    "# bash completion for aliquot; use: source <(aliquot completion bash)\n"
    "_aliquot() {\n"
    "    local IFS=$'\\n' line\n"
    "    COMPREPLY=()\n"
    "    while read -r line; do\n"
    "        COMPREPLY+=(\"${line%%$'\\t'*}\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
    "2>/dev/null)\n"
    "}\n"
    "complete -o bashdefault -o default -F _aliquot aliquot\n";

static const char zsh_script[] =
    "#compdef aliquot\n"
    "# zsh completion for aliquot; use: source <(aliquot completion zsh)\n"
    "_aliquot() {\n"
    "    local -a candidates\n"
    "    local line\n"
    "    while IFS= read -r line; do\n"
    "        candidates+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done < <(\"${words[1]}\" completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    if (( ${#candidates} )); then\n"
    "        _describe aliquot candidates\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "compdef _aliquot aliquot\n";

const char *complete_script(const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        return bash_script;
    return strcmp(shell, "zsh") == 0 ? zsh_script : NULL;
}
