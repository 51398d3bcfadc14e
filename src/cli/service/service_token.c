/* SPDX-License-Identifier: Apache-2.0 */
/* "service token create", "ls", "rm": what lets clients ask a service. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/local_date.h"
#include "cli/service/service.h"
#include "cli/service/service_figures.h"
#include "cli/verbs.h"
#include "http/url.h"

static const struct column token_columns[] = {
    { "label", "LABEL", COLUMN_TEXT, COLUMN_IS_NAME },
    { "expires_at", "EXPIRES", COLUMN_CLOCK, 0 },
    { "paths", "PATHS", COLUMN_NAMES, 0 },
    { "rate", "RATE", COLUMN_NUMBER, 0 },
    { "budget", "BUDGET", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "spent", "SPENT", COLUMN_LOAD, 0 },
    { "requests", "REQUESTS", COLUMN_NUMBER, 0 },
    { "errors", "ERRORS", COLUMN_NUMBER, 0 },
    { "refused", "REFUSED", COLUMN_NUMBER, 0 },
    { "prompt_tokens", "PROMPT TOKENS", COLUMN_NUMBER, 0 },
    { "completion_tokens", "ANSWER TOKENS", COLUMN_NUMBER, 0 },
    { "cached_tokens", "CACHED", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "used", "USED", COLUMN_NUMBER, COLUMN_IS_EXTRA },
    { "figures", "FIGURES", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "used_at", "LAST USED", COLUMN_TIME, 0 },
    { "created_at", "AGE", COLUMN_TIME, 0 },
    { "created_by", "BY", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

int service_add_token(struct cli *cli, const char *service, json_t *body, json_t **ret,
                      struct aq_error *err)
{
    return cli_thing_call(cli, METHOD_POST, &model_services, service, "/tokens", body, ret, err);
}

/* ---- create ---- */

struct service_token_opts {
    const char *label, *expires, *rate;
    struct cli_int duration, budget;
    struct cli_list paths;
};

static const struct cli_opt token_opts[] = {
    { 'l', "label", CLI_STR, offsetof(struct service_token_opts, label), "TEXT",
      "label; lists show it", "label" },
    { 'd', "duration", CLI_DURATION, offsetof(struct service_token_opts, duration), "TIME",
      "it expires after this long, such as 3d; default never", "duration" },
    { 0, "expires", CLI_STR, offsetof(struct service_token_opts, expires), "DATE",
      "it expires at this date (local time)" },
    { 0, "path", CLI_LIST, offsetof(struct service_token_opts, paths), "PREFIX",
      "only for paths that begin with this, such as /v1/chat; repeatable", "paths" },
    { 0, "rate", CLI_STR, offsetof(struct service_token_opts, rate), "N",
      "requests a second, such as 0.5; default no limit" },
    { 0, "budget", CLI_INT, offsetof(struct service_token_opts, budget), "N",
      "tokens of the language model, prompts and answers; default no limit", "budget" },
    CLI_OPT_END,
};

static int service_token_body(const struct service_token_opts *opts, json_t *body,
                              struct aq_error *err)
{
    char date[CLOCK_ISO_MAX], *end;
    double rate;
    int r = cli_options_add(token_opts, opts, body, err);

    if (r < 0 || (r = local_date_check("--expires", opts->expires, err)) < 0)
        return r;
    if (opts->budget.is_set && opts->budget.value == 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--budget takes a number of tokens from 1; leave it out for no limit");
    if (opts->expires && opts->duration.is_set)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--expires and --duration exclude each other");
    if (opts->expires)
        (void)json_object_set_new(body, "expires_at",
                                  json_string(local_date_resolve(opts->expires, date)));
    if (!opts->rate)
        return 0;
    rate = strtod(opts->rate, &end);
    if (end == opts->rate || *end || !isfinite(rate) || rate <= 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--rate takes requests a second, such as 10 or 0.5, not '%.40s'",
                            opts->rate);
    return json_object_set_new(body, "rate", json_real(rate));
}

static int service_token_create(struct cli *cli, void *data, int argc, char **argv,
                                struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_auto_t *body = json_object(), *token = NULL;
    int r = service_token_body(data, body, err);

    (void)argc;
    if (r == 0)
        r = service_add_token(cli, argv[0], body, &token, err);
    if (r < 0)
        return r;
    if (output_is_human(&cli->output))
        strbuf_addf(&out, "%s\n", output_text(token, "token"));
    else
        output_document(&cli->output, token, &out);
    if ((r = cli_print(&out, err)) == 0)
        cli_note(cli, "it is shown only now; clients send it as 'Authorization: Bearer TOKEN'");
    return r;
}

const struct cli_verb verb_service_token_create = {
    .name = "service token create",
    .args = "SERVICE",
    .summary = "Make a token for clients of a service, and print it once",
    .details = "The manager keeps only its hash. A request beyond --rate or --budget is answered\n"
               "429. The budget counts the 'usage' of answers in OpenAI's form.",
    .examples = "aliquot service token create digits --label bench --duration 3d --rate 20\n"
                "TOKEN=$(aliquot service token create digits --quiet)",
    .opts = token_opts,
    .opts_size = sizeof(struct service_token_opts),
    .min_args = 1,
    .max_args = 1,
    .run = service_token_create,
};

/* ---- ls ---- */

static int service_token_ls(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    json_auto_t *answer = NULL;
    const json_t *tokens;
    json_t *token;
    size_t i;
    int r = cli_thing_call(cli, METHOD_GET, &model_services, argv[0], "/tokens", NULL, &answer,
                           err);

    (void)data;
    (void)argc;
    tokens = json_object_get(answer, "items");
    json_array_foreach(tokens, i, token) {
        service_figures_adapt_token(token);
        if (output_is_human(&cli->output)
            && !(json_number_value(json_object_get(token, "rate")) > 0))
            (void)json_object_set_new(token, "rate", json_null()); /* "-", as for other limits */
    }
    return r < 0 || list_note_empty(cli, tokens) ? r : list_print(cli, token_columns, tokens, err);
}

const struct cli_verb verb_service_token_ls = {
    .name = "service token ls",
    .args = "SERVICE",
    .summary = "List the tokens of a service, and how much they were used",
    .details =
        "SPENT is the number of tokens of the language model that were used, and the budget\n"
        "if there is one. REFUSED are requests that a proxy answered 429 or 503.",
    .examples = "aliquot service token ls digits",
    .if_empty = "the service has no tokens; to make one: aliquot service token create SERVICE",
    .min_args = 1,
    .max_args = 1,
    .run = service_token_ls,
};

/* ---- rm ---- */

static int service_token_rm(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 1; r == 0 && i < argc; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;

        strbuf_adds(&rest, "/tokens/");
        url_encode(&rest, argv[i]);
        r = cli_thing_call(cli, METHOD_DELETE, &model_services, argv[0], rest.data, NULL, NULL,
                           err);
    }
    return r;
}

const struct cli_verb verb_service_token_rm = {
    .name = "service token rm",
    .args = "SERVICE TOKEN...",
    .summary = "Revoke tokens of a service, at once",
    .details = "TOKEN is a label, an id, or at least the first 8 characters of an id. Requests\n"
               "of these tokens that are under way are cut, too.",
    .examples = "aliquot service token rm digits bench",
    .min_args = 2,
    .max_args = -1,
    .run = service_token_rm,
};
