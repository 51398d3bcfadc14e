/* SPDX-License-Identifier: Apache-2.0 */
/* "admin notification channel": where notifications go. */
#include <errno.h>
#include <string.h>

#include "cli/admin/notification.h"
#include "cli/client.h"
#include "cli/verbs.h"

#define SPEC_FILE_MAX (64u << 10)
#define TEST_FILE_MAX 5000

static const struct column channel_columns[] = {
    { "name", "CHANNEL", COLUMN_TEXT, COLUMN_IS_NAME },
    { "channel_type", "TYPE", COLUMN_TEXT, 0 },
    { "enabled", "ENABLED", COLUMN_BOOL, 0 },
    { "id", "ID", COLUMN_TEXT, 0 },
    { "description", "DESCRIPTION", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "spec", "SPEC", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "created_at", "CREATED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "updated_at", "CHANGED", COLUMN_TIME, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static int channel_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return notification_ls(cli, NOTIFICATION_CHANNELS, channel_columns, err);
}

const struct cli_verb verb_admin_notification_channel_ls = {
    .name = "admin notification channel ls",
    .args = "",
    .summary = "List the channels through which notifications are sent",
    .examples = "aliquot admin notification channel ls",
    .if_empty = "there are no channels; 'admin notification channel create' makes one",
    .run = channel_ls,
};

static int channel_info(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    return notification_info(cli, NOTIFICATION_CHANNELS, argv[0], channel_columns, err);
}

const struct cli_verb verb_admin_notification_channel_info = {
    .name = "admin notification channel info",
    .args = "CHANNEL",
    .summary = "Show a channel of notifications",
    .details = "Headers have no values and logins no passwords: they are never shown.",
    .examples = "aliquot admin notification channel info team",
    .min_args = 1,
    .max_args = 1,
    .run = channel_info,
};

struct channel_opts {
    struct notification_opts shared;
    int type;
    const char *url, *spec;
};

static const struct cli_opt channel_create_opts[] = {
    { 't', "type", CLI_CHOICE, offsetof(struct channel_opts, type), "webhook|email",
      "how it sends; webhook by default" },
    { 0, "url", CLI_STR, offsetof(struct channel_opts, url), "URL", "where a webhook sends to" },
    { 0, "spec", CLI_STR, offsetof(struct channel_opts, spec), "FILE",
      "where and how as JSON, from there; - is standard input" },
    NOTIFICATION_CREATE_ROWS(struct channel_opts),
    CLI_OPT_END,
};

static const struct cli_opt channel_set_opts[] = {
    { 0, "url", CLI_STR, offsetof(struct channel_opts, url), "URL",
      "a spec of this URL and else by default" },
    { 0, "spec", CLI_STR, offsetof(struct channel_opts, spec), "FILE",
      "where and how as JSON, from there; - is standard input" },
    NOTIFICATION_SET_ROWS(struct channel_opts),
    CLI_OPT_END,
};

/* *ret is NULL if neither option is given. */
static int channel_read_spec(const struct channel_opts *opts, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    *ret = NULL;
    if (opts->url && opts->spec)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--url and --spec are two specs");
    if (opts->url)
        *ret = json_pack("{s:s}", "url", opts->url);
    if (opts->url)
        return *ret ? 0 : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--url is not UTF-8");
    if (!opts->spec)
        return 0;
    r = cli_read_file(opts->spec, SPEC_FILE_MAX, &text, err);
    if (r == 0)
        *ret = json_loadb(text.data, text.len, 0, NULL);
    if (r == 0 && !json_is_object(*ret))
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "what --spec has is no JSON object");
    if (text.cap)
        explicit_bzero(text.data, text.len);
    return r;
}

static int channel_create(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct channel_opts *opts = data;
    json_auto_t *spec = NULL;
    json_t *body;
    int r = channel_read_spec(opts, &spec, err);

    (void)argc;
    if (r == 0 && !spec)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "something is missing: --url or --spec");
    if (r < 0)
        return r;
    body = json_pack("{s:s, s:O}", "channel_type", opts->type == 2 ? "email" : "webhook", "spec",
                     spec);
    return notification_create(cli, NOTIFICATION_CHANNELS, argv[0], &opts->shared, body, err);
}

const struct cli_verb verb_admin_notification_channel_create = {
    .name = "admin notification channel create",
    .args = "NAME",
    .summary = "Make a channel for notifications: a webhook, or e-mail",
    .details =
        "A webhook's spec is {\"url\", \"method\", \"content_type\", \"headers\", \"timeout\",\n"
        "\"success_status_codes\"}, of which only the URL is needed. One of e-mail is\n"
        "{\"smtp\": {\"host\", \"port\", \"use_tls\", \"timeout\"}, \"message\": {\"from_email\",\n"
        "\"to_emails\", \"subject_template\"}, \"auth\": {\"username\", \"password\"}}. Passwords\n"
        "and values of headers are kept sealed and never shown. Addresses that are private\n"
        "need [api] callback-networks in manager.toml.",
    .examples = "aliquot admin notification channel create --url https://hooks.example.org/x team\n"
                "aliquot admin notification channel create -t email --spec mail.json operators",
    .opts = channel_create_opts,
    .opts_size = sizeof(struct channel_opts),
    .min_args = 1,
    .max_args = 1,
    .run = channel_create,
};

static int channel_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct channel_opts *opts = data;
    json_auto_t *spec = NULL;
    json_t *body;
    int r = channel_read_spec(opts, &spec, err);

    (void)argc;
    if (r < 0)
        return r;
    body = spec ? json_pack("{s:O}", "spec", spec) : json_object();
    return notification_set(cli, NOTIFICATION_CHANNELS, argv[0], &opts->shared, body, err);
}

const struct cli_verb verb_admin_notification_channel_set = {
    .name = "admin notification channel set",
    .args = "CHANNEL",
    .summary = "Change a channel of notifications",
    .details = "A spec replaces the former one, with its secrets. CHANNEL is a name or an id.",
    .examples = "aliquot admin notification channel set --enabled no team",
    .opts = channel_set_opts,
    .opts_size = sizeof(struct channel_opts),
    .min_args = 1,
    .max_args = 1,
    .run = channel_set,
};

static int channel_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return notification_rm(cli, NOTIFICATION_CHANNELS, argc, argv, err);
}

const struct cli_verb verb_admin_notification_channel_rm = {
    .name = "admin notification channel rm",
    .args = "CHANNEL...",
    .summary = "Remove channels of notifications",
    .details = "One that a rule uses stays.",
    .examples = "aliquot admin notification channel rm team",
    .min_args = 1,
    .max_args = -1,
    .run = channel_rm,
};

static int channel_test(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT, text = STRBUF_INIT;
    json_auto_t *body = NULL;
    int r = notification_path(cli, NOTIFICATION_CHANNELS, argv[0], &path, err);

    (void)data;
    strbuf_adds(&path, "/validate");
    if (r == 0 && argc > 1 && strcmp(argv[1], "-") == 0)
        r = cli_read_file("-", TEST_FILE_MAX, &text, err);
    else
        strbuf_adds(&text, argc > 1 ? argv[1] : "{\"text\": \"A test of Aliquot\"}");
    if (r == 0 && !(body = json_pack("{s:s%}", "test_message", text.data, text.len)))
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the text is not UTF-8");
    if (r == 0)
        r = cli_call(cli, METHOD_POST, path.data, body, NULL, err);
    if (r == 0)
        cli_note(cli, "the message has been sent");
    return r;
}

const struct cli_verb verb_admin_notification_channel_test = {
    .name = "admin notification channel test",
    .args = "CHANNEL [TEXT | -]",
    .summary = "Send a text through a channel now, and say what became of it",
    .details = "The text is sent as it is. It is tried once, also if the channel is disabled.",
    .examples = "aliquot admin notification channel test team '{\"text\": \"hello\"}'",
    .min_args = 1,
    .max_args = 2,
    .run = channel_test,
};
