/* version, help, completion, config show. */
#include <errno.h>
#include <string.h>

#include "cli/client.h"
#include "cli/help.h"
#include "cli/list.h"
#include "cli/verbs.h"

/* ---- version ---- */

static int version(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
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
    .run = version,
};

/* ---- help ---- */

static int help(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
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
    .summary = "Explain a command, or exit-codes, environment, output, resources",
    .examples = "aliquot help run\naliquot help exit-codes",
    .max_args = -1,
    .flags = CLI_NO_CONFIG,
    .run = help,
};

/* ---- completion ---- */

/* Names from the manager; whoever cannot reach it gets none. */
static void offer_names(struct cli *cli, const char *noun, const char *typed, struct strbuf *out)
{
    bool is_session = strcmp(noun, "session") == 0;
    const char *path = is_session ? "/aliquot/v1/sessions?status=PENDING,PREPARING,RUNNING"
                                  : "/aliquot/v1/agents";
    json_t *rows = NULL, *row;
    size_t i;

    if (cli_config_load(&cli->config, cli->globals.endpoint, cli->globals.profile, NULL) < 0 ||
        cli_call_list(cli, path, 100, &rows, NULL, NULL) < 0)
        return;
    json_array_foreach(rows, i, row) {
        const char *name = json_string_value(json_object_get(row, is_session ? "name" : "id"));
        const char *status = json_string_value(json_object_get(row, "status"));

        if (name && strncmp(name, typed, strlen(typed)) == 0)
            strbuf_addf(out, "%s\t%s\n", name, status ? status : "");
    }
    json_decref(rows);
}

static int completion(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *script = complete_script(argv[0]), *dynamic;

    (void)data;
    if (script) {
        strbuf_adds(&out, script);
    } else if (strcmp(argv[0], "words") == 0) {
        bool has_dashes = argc > 1 && strcmp(argv[1], "--") == 0;

        argc -= 1 + has_dashes;
        argv += 1 + has_dashes;
        complete_words(argc, argv, &out, &dynamic);
        if (dynamic)
            offer_names(cli, dynamic, argv[argc - 1], &out);
    } else {
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "there is a script for bash and for zsh");
    }
    return cli_print(&out, err);
}

const struct cli_verb verb_completion = {
    .name = "completion",
    .args = "bash | zsh",
    .summary = "Print a script that completes commands in the shell",
    .details = "Completes commands, options, their values, and names of sessions and agents.",
    .examples = "source <(aliquot completion bash)\n"
                "aliquot completion zsh > \"${fpath[1]}/_aliquot\"",
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_NO_CONFIG | CLI_STOP_AT_FIRST,
    .run = completion,
};

/* ---- config show ---- */

static const struct column config_columns[] = {
    { "setting", "SETTING", COLUMN_TEXT, COLUMN_IS_NAME },
    { "value", "VALUE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "origin", "ORIGIN", COLUMN_TEXT, 0 },
    { "meaning", "MEANING", COLUMN_TEXT, COLUMN_IS_WIDE | COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static int config_show(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *rows = json_array();
    int r = 0;

    (void)data;
    (void)argc;
    (void)argv;
    for (int s = 0; s < SETTING_COUNT; s++) {
        const char *value = cli_config_get(&cli->config, s);
        const char *shown = value && cli_settings[s].is_secret ? "(secret)" : value;

        if (json_array_append_new(rows, json_pack("{s:s, s:s?, s:s, s:s}", "setting",
                                                  cli_settings[s].key, "value", shown, "origin",
                                                  cli->config.origins[s], "meaning",
                                                  cli_settings[s].meaning)) < 0)
            r = aq_fail(err, ENOMEM, "configuration");
    }
    if (r == 0)
        r = output_list(&cli->output, config_columns, rows, &out, err);
    if (r == 0)
        r = cli_print(&out, err);
    if (r == 0)
        cli_note(cli, "profile '%s' of %s", cli->config.profile, cli->config.path);
    json_decref(rows);
    return r;
}

const struct cli_verb verb_config_show = {
    .name = "config show",
    .args = "",
    .summary = "Show each setting and where it comes from",
    .details = "From the first of: option, ALIQUOT_ variable, BACKEND_ variable, profile, default.",
    .examples = "aliquot config show\naliquot config show -o json",
    .run = config_show,
};
