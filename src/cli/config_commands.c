/* SPDX-License-Identifier: Apache-2.0 */
/* "config": each setting and where it comes from; changes of the profile. */
#include <errno.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/verbs.h"

static const struct column config_columns[] = {
    { "setting", "SETTING", COLUMN_TEXT, COLUMN_IS_NAME },
    { "value", "VALUE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "origin", "ORIGIN", COLUMN_TEXT, 0 },
    { "meaning", "MEANING", COLUMN_TEXT, COLUMN_IS_WIDE | COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static int config_show_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_t *rows = json_array();
    int r;

    (void)data;
    (void)argc;
    (void)argv;
    for (int s = 0; s < SETTING_COUNT; s++) {
        const char *value = cli_config_get(&cli->config, s);
        const char *shown = value && cli_settings[s].is_secret ? "(secret)" : value;

        if (json_array_append_new(rows,
                                  json_pack("{s:s, s:s?, s:s, s:s}", "setting", cli_settings[s].key,
                                            "value", shown, "origin", cli->config.origins[s],
                                            "meaning", cli_settings[s].meaning))
            < 0) {
            json_decref(rows);
            return aq_fail(err, EINVAL, "the value of '%s' is not UTF-8; change it",
                           cli_settings[s].key);
        }
    }
    r = list_print(cli, config_columns, rows, err);
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
    .run = config_show_run,
};

/* ---- set, unset ---- */

static int config_find_setting(const char *key, enum cli_setting *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;
    struct suggest suggest = suggest_for(key, strlen(key));

    for (int s = 0; s < SETTING_COUNT; s++) {
        if (strcmp(cli_settings[s].key, key) == 0) {
            *ret = (enum cli_setting)s;
            return 0;
        }
        suggest_offer(&suggest, cli_settings[s].key);
        strbuf_addf(&known, "%s%s", s ? ", " : "", cli_settings[s].key);
    }
    if (suggest.best)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "there is no setting '%.60s'; did you mean '%s'?", key, suggest.best);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "there is no setting '%.60s'; there are: %.300s", key, known.data);
}

/* NULL takes the setting out. */
static int config_change(const struct cli *cli, enum cli_setting s, const char *value,
                         struct aq_error *err)
{
    json_t *changes = json_pack("{s:s?}", cli_settings[s].key, value);
    int r = changes ? cli_profile_change(&cli->config, changes, err)
                    : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the value is not UTF-8");

    json_decref(changes);
    return r;
}

static void config_note_origin(const struct cli *cli, enum cli_setting s)
{
    const char *origin = cli->config.origins[s];

    if (strncmp(origin, "ALIQUOT_", 8) == 0 || strncmp(origin, "BACKEND_", 8) == 0)
        cli_note(cli, "the variable %s is set and goes before the profile", origin);
}

static int config_set_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    char line[CLI_LINE_MAX];
    const char *value = argc > 1 ? argv[1] : line;
    enum cli_setting s;
    int r = config_find_setting(argv[0], &s, err);

    (void)data;
    if (r < 0)
        return r;
    if (argc > 1 && cli_settings[s].is_secret)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "a secret on the command line is seen by others; leave it out, and it "
                            "is read from the terminal or standard input");
    if (argc < 2)
        r = cli_read_line(cli_settings[s].key, cli_settings[s].is_secret, line, err);
    if (r == 0)
        r = config_change(cli, s, value, err);
    if (r == 0)
        config_note_origin(cli, s);
    explicit_bzero(line, sizeof(line));
    return r;
}

const struct cli_verb verb_config_set = {
    .name = "config set",
    .args = "SETTING [VALUE]",
    .summary = "Keep a setting in the profile",
    .details = "Without VALUE it is asked for. 'aliquot config show' lists the settings.",
    .examples = "aliquot config set resource_group gpus\n"
                "aliquot config set image python:3.12\n"
                "aliquot config set endpoint https://cluster.example.com --profile work",
    .min_args = 1,
    .max_args = 2,
    .run = config_set_run,
};

static int config_unset_run(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    enum cli_setting s;
    int r = config_find_setting(argv[0], &s, err);

    (void)data;
    (void)argc;
    if (r == 0)
        r = config_change(cli, s, NULL, err);
    if (r == 0)
        config_note_origin(cli, s);
    return r;
}

const struct cli_verb verb_config_unset = {
    .name = "config unset",
    .args = "SETTING",
    .summary = "Take a setting out of the profile",
    .examples = "aliquot config unset resource_group",
    .min_args = 1,
    .max_args = 1,
    .run = config_unset_run,
};
