/* SPDX-License-Identifier: Apache-2.0 */
/* "service ls", "info", "url": services as they are. */
#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/output/row_filter.h"
#include "cli/service/service.h"
#include "cli/service/service_rollout.h"
#include "cli/verbs.h"

/* ---- ls ---- */

struct service_ls_opts {
    struct list_opts list;
    bool all, everyone;
};

static const struct cli_opt ls_opts[] = {
    { 'a', "all", CLI_FLAG, offsetof(struct service_ls_opts, all), NULL,
      "also those that have ended", "all_states" },
    { 'A', "everyone", CLI_FLAG, offsetof(struct service_ls_opts, everyone), NULL,
      "those of all users (administrators)", "all" },
    { 'n', "limit", CLI_INT, offsetof(struct service_ls_opts, list.limit), "N",
      "at most so many rows; 0 = all; default 1000" },
    { 0, "filter", CLI_LIST, offsetof(struct service_ls_opts, list.filters), "EXPR",
      "only rows that match, e.g. status=failing or 'age>2h'; repeatable" },
    { 'w', "watch", CLI_DURATION, offsetof(struct service_ls_opts, list.watch), "TIME",
      "show it again after so long, until Ctrl-C" },
    CLI_OPT_END,
};

static int service_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct service_ls_opts *opts = data;

    (void)argc;
    (void)argv;
    for (size_t i = 0; i < opts->list.filters.count; i++)
        if (!row_filter_is_ours(opts->list.filters.items[i]))
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "--filter takes COLUMN=VALUE, such as status=failing or 'age>2h', "
                                "not '%.60s'",
                                opts->list.filters.items[i]);
    strbuf_adds(&path, SERVICES_PATH);
    cli_path_options(&path, ls_opts, opts);
    return list_show_adapted(cli, path.data, &opts->list, service_columns, service_adapt, err);
}

const struct cli_verb verb_service_ls = {
    .name = "service ls",
    .args = "",
    .summary = "List model services",
    .details = "READY are the ready and the wanted replicas; REQUESTS came since the service was\n"
               "created.",
    .examples = "aliquot service ls --filter status=failing",
    .if_empty = "you have no model services; to create one: aliquot service create",
    .opts = ls_opts,
    .opts_size = sizeof(struct service_ls_opts),
    .run = service_ls,
};

/* ---- info ---- */

/* The problem may have lines of a log, or of what the scheduler says: those stand below the record. */
static void service_info_take_problem(json_t *service, struct strbuf *out)
{
    const char *problem = output_text(service, "problem");

    if (!strchr(problem, '\n'))
        return;
    strbuf_adds(out, "\nPROBLEM\n");
    utf8_write_printable(problem, strlen(problem), out);
    if (out->data[out->len - 1] != '\n')
        strbuf_addc(out, '\n');
    (void)json_object_del(service, "problem");
}

static int service_info(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    bool is_human = output_is_human(&cli->output) && !cli->output.columns;
    json_auto_t *service = NULL;
    const json_t *replicas;
    int r = service_get(cli, argv[0], &service, err);

    (void)data;
    (void)argc;
    if (r == 0 && is_human)
        service_info_take_problem(service, &out);
    if (r < 0 || (r = service_print(cli, service, err)) < 0 || !is_human)
        return r;
    if (service_has_rollout(service)) {
        strbuf_addc(&out, '\n');
        service_write_rollout(&cli->output, service, &out);
    }
    replicas = json_object_get(service, "replica_list");
    if (json_array_size(replicas)) {
        strbuf_addc(&out, '\n');
        r = output_list(&cli->output, service_replica_columns, replicas, &out, err);
    }
    return r < 0 ? r : cli_print(&out, err);
}

const struct cli_verb verb_service_info = {
    .name = "service info",
    .args = "SERVICE",
    .summary = "Show a service: its settings, its replicas, and what is wrong",
    .details =
        "PROBLEM says why fewer replicas are ready than wanted. JSON has the goal revision\n"
        "and the figures of the proxies besides. A service that has ended is found by its\n"
        "id, or by its name unless another has it. A rollout is shown as by 'service rollout'.",
    .examples = "aliquot service info digits\n"
                "aliquot service info digits -o json",
    .min_args = 1,
    .max_args = 1,
    .run = service_info,
};

/* ---- url ---- */

static const struct column url_columns[] = {
    { "url", "URL", COLUMN_TEXT, COLUMN_IS_NAME },
    { "urls", "URLS", COLUMN_NAMES, 0 },
    COLUMN_END,
};

static int service_url(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_auto_t *service = NULL;
    const json_t *urls, *url;
    size_t i;
    int r = service_get(cli, argv[0], &service, err);

    (void)data;
    (void)argc;
    if (r < 0)
        return r;
    if (!output_is_human(&cli->output))
        return record_print(cli, url_columns, service, err);
    urls = json_object_get(service, "urls");
    if (!*output_text(service, "url") && !json_array_size(urls)) {
        cli_hint(cli, "aliquot doctor proxy");
        return aq_fail(err, ENOENT, "service '%s' has no URL, as no proxy is connected", argv[0]);
    }
    if (!json_array_size(urls))
        strbuf_addf(&out, "%s\n", output_text(service, "url"));
    json_array_foreach(urls, i, url)
        strbuf_addf(&out, "%s\n", json_string_value(url));
    return cli_print(&out, err);
}

const struct cli_verb verb_service_url = {
    .name = "service url",
    .args = "SERVICE",
    .summary = "Print the URLs of a service, one a line",
    .details =
        "One for each proxy that is connected, and https://SERVICE--serve.DOMAIN/ for each of\n"
        "them that has a domain.",
    .examples =
        "curl -H \"Authorization: Bearer $TOKEN\" \"$(aliquot service url digits | head -n1)\"",
    .min_args = 1,
    .max_args = 1,
    .run = service_url,
};
