/* SPDX-License-Identifier: Apache-2.0 */
/* "admin notification rule": what is told through channels. */
#include <errno.h>
#include <string.h>

#include "cli/admin/notification.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define TEMPLATE_FILE_MAX 65537 /* what the manager takes, and the end of the line */
#define TYPES_PATH "/notifications/rule-types"

static const struct column rule_columns[] = {
    { "name", "RULE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "rule_type", "TYPE", COLUMN_TEXT, 0 },
    { "enabled", "ENABLED", COLUMN_BOOL, 0 },
    { "id", "ID", COLUMN_TEXT, 0 },
    { "channel_id", "CHANNEL-ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "description", "DESCRIPTION", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "message_template", "MESSAGE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "created_at", "CREATED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "updated_at", "CHANGED", COLUMN_TIME, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static int rule_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return notification_ls(cli, NOTIFICATION_RULES, rule_columns, err);
}

const struct cli_verb verb_admin_notification_rule_ls = {
    .name = "admin notification rule ls",
    .args = "",
    .summary = "List the rules by which notifications are sent",
    .examples = "aliquot admin notification rule ls",
    .if_empty = "there are no rules; 'admin notification rule create' makes one",
    .run = rule_ls,
};

static int rule_info(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    return notification_info(cli, NOTIFICATION_RULES, argv[0], rule_columns, err);
}

const struct cli_verb verb_admin_notification_rule_info = {
    .name = "admin notification rule info",
    .args = "RULE",
    .summary = "Show a rule of notifications",
    .examples = "aliquot admin notification rule info ends",
    .min_args = 1,
    .max_args = 1,
    .run = rule_info,
};

struct rule_opts {
    struct notification_opts shared;
    const char *type, *channel, *template, *file;
};

#define TEMPLATE_ROWS                                                                        \
    { 0, "template", CLI_STR, offsetof(struct rule_opts, template), "TEXT", "the message" }, \
    {                                                                                        \
        'f', "file", CLI_STR, offsetof(struct rule_opts, file), "FILE",                      \
            "read the message from there; - is standard input"                               \
    }

static const struct cli_opt rule_create_opts[] = {
    { 't', "type", CLI_STR, offsetof(struct rule_opts, type), "TYPE",
      "what is told, as 'rule types' lists it", "rule_type" },
    { 'c', "channel", CLI_STR, offsetof(struct rule_opts, channel), "CHANNEL",
      "through which channel: a name or an id" },
    TEMPLATE_ROWS,
    NOTIFICATION_CREATE_ROWS(struct rule_opts),
    CLI_OPT_END,
};

static const struct cli_opt rule_set_opts[] = {
    TEMPLATE_ROWS,
    NOTIFICATION_SET_ROWS(struct rule_opts),
    CLI_OPT_END,
};

/* Add the message to the body, if it is given. */
static int rule_add_template(const struct rule_opts *opts, json_t *body, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = 0;

    if (opts->template && opts->file)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--template and --file are two messages");
    if (opts->file)
        r = cli_read_file(opts->file, TEMPLATE_FILE_MAX, &text, err);
    else if (opts->template)
        strbuf_adds(&text, opts->template);
    else
        return 0;
    if (r == 0
        && json_object_set_new(body, "message_template", json_stringn(text.data, text.len)) < 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the message is not UTF-8");
    return r;
}

static int rule_create(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf channel = STRBUF_INIT;
    const struct rule_opts *opts = data;
    json_auto_t *body = NULL;
    int r;

    (void)argc;
    if (!opts->type || !opts->channel || (!opts->template && !opts->file))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "a rule needs --type, --channel, and --template or --file");
    r = notification_id(cli, NOTIFICATION_CHANNELS, opts->channel, &channel, err);
    body = json_pack("{s:s}", "channel_id", channel.data);
    if (r == 0)
        r = rule_add_template(opts, body, err);
    return r < 0 ? r
                 : notification_create(cli, NOTIFICATION_RULES, argv[0], &opts->shared,
                                       json_incref(body), err);
}

const struct cli_verb verb_admin_notification_rule_create = {
    .name = "admin notification rule create",
    .args = "NAME",
    .summary = "Have something told through a channel: a session's start, or its end",
    .details =
        "The message is sent as it is, with fields of the type in place of {{ session_name }};\n"
        "a webhook of JSON gets their texts as JSON writes them.",
    .examples =
        "aliquot admin notification rule create -t session.terminated -c team \\\n"
        "    --template '{\"text\": \"{{ session_name }}: {{ termination_reason }}\"}' ends",
    .opts = rule_create_opts,
    .opts_size = sizeof(struct rule_opts),
    .min_args = 1,
    .max_args = 1,
    .run = rule_create,
};

static int rule_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct rule_opts *opts = data;
    json_auto_t *body = json_object();
    int r = rule_add_template(opts, body, err);

    (void)argc;
    return r < 0 ? r
                 : notification_set(cli, NOTIFICATION_RULES, argv[0], &opts->shared,
                                    json_incref(body), err);
}

const struct cli_verb verb_admin_notification_rule_set = {
    .name = "admin notification rule set",
    .args = "RULE",
    .summary = "Change a rule of notifications",
    .details = "Its type and channel stay. RULE is a name or an id.",
    .examples = "aliquot admin notification rule set --enabled no ends",
    .opts = rule_set_opts,
    .opts_size = sizeof(struct rule_opts),
    .min_args = 1,
    .max_args = 1,
    .run = rule_set,
};

static int rule_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return notification_rm(cli, NOTIFICATION_RULES, argc, argv, err);
}

const struct cli_verb verb_admin_notification_rule_rm = {
    .name = "admin notification rule rm",
    .args = "RULE...",
    .summary = "Remove rules of notifications",
    .examples = "aliquot admin notification rule rm ends",
    .min_args = 1,
    .max_args = -1,
    .run = rule_rm,
};

static int rule_test(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *body = json_pack("{s:{}}", "notification_data"), *answer = NULL;
    int r = notification_path(cli, NOTIFICATION_RULES, argv[0], &path, err);

    (void)data;
    for (int i = 1; r == 0 && i < argc; i++) {
        char *value = strchr(argv[i], '=');

        if (!value)
            r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%.64s' is not FIELD=VALUE", argv[i]);
        else if (json_object_setn_new(json_object_get(body, "notification_data"), argv[i],
                                      (size_t)(value - argv[i]), json_string(value + 1))
                 < 0)
            r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%.64s' is not UTF-8", argv[i]);
    }
    strbuf_adds(&path, "/validate");
    if (r == 0)
        r = cli_call(cli, METHOD_POST, path.data, body, &answer, err);
    if (r == 0 && !output_is_human(&cli->output))
        return record_print(cli,
                            (const struct column[]){
                                { "message", "MESSAGE", COLUMN_TEXT, COLUMN_IS_NAME }, COLUMN_END },
                            answer, err);
    if (r == 0)
        cli_note(cli, "the message has been sent");
    return r;
}

const struct cli_verb verb_admin_notification_rule_test = {
    .name = "admin notification rule test",
    .args = "RULE [FIELD=VALUE...]",
    .summary = "Send what a rule makes of test data now, and say what became of it",
    .details = "Fields that are not given have an example. -o json shows the message.",
    .examples = "aliquot admin notification rule test ends session_name=try",
    .min_args = 1,
    .max_args = -1,
    .run = rule_test,
};

/* ---- types ---- */

static const struct column type_columns[] = {
    { "type", "TYPE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "fields", "FIELDS", COLUMN_NAMES, 0 },
    COLUMN_END,
};

/* {"type", "fields"} of a type. */
static int rule_read_type(struct cli *cli, const char *name, json_t *rows, struct aq_error *err)
{
    const struct cli_things types = { TYPES_PATH "/", NULL };
    json_auto_t *answer = NULL, *fields = json_array();
    const char *field;
    json_t *what;
    int r = cli_thing_call(cli, METHOD_GET, &types, name, "/schema", NULL, &answer, err);

    json_object_foreach(json_object_get(json_object_get(answer, "json_schema"), "properties"),
                        field, what)
        (void)json_array_append_new(fields, json_string(field));
    if (r == 0)
        (void)json_array_append_new(rows, json_pack("{s:s, s:O}", "type", name, "fields", fields));
    return r;
}

static int rule_types(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    static const char *const lists[] = { "rule_types", "extension_types" };
    json_auto_t *answer = NULL, *rows = json_array();
    json_t *type;
    size_t i;
    int r = cli_call(cli, METHOD_GET, TYPES_PATH, NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    for (size_t k = 0; k < AQ_COUNT(lists); k++)
        json_array_foreach(json_object_get(answer, lists[k]), i, type)
            if (r == 0 && json_is_string(type))
                r = rule_read_type(cli, json_string_value(type), rows, err);
    return r < 0 ? r : list_print(cli, type_columns, rows, err);
}

const struct cli_verb verb_admin_notification_rule_types = {
    .name = "admin notification rule types",
    .args = "",
    .summary = "List what rules can be about, and the fields for their messages",
    .examples = "aliquot admin notification rule types",
    .run = rule_types,
};
