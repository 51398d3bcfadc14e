/* SPDX-License-Identifier: Apache-2.0 */
/* "service logs", "ratio": single replicas. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/service/service.h"
#include "cli/session/logs.h"
#include "cli/verbs.h"
#include "http/url.h"

/* ---- logs ---- */

struct service_logs_opts {
    struct logs_opts logs;
    const char *replica;
};

static const struct cli_opt service_logs_opts[] = {
    { 0, "replica", CLI_STR, offsetof(struct service_logs_opts, replica), "N",
      "of this replica, by its number; default the newest" },
    LOGS_OPT_ROWS(struct service_logs_opts),
    CLI_OPT_END,
};

static int service_logs(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct service_logs_opts *opts = data;
    bool is_number = !opts->replica || strspn(opts->replica, "0123456789") == strlen(opts->replica);
    char session[SERVICE_SESSION_MAX];
    json_auto_t *service = NULL;
    const json_t *replica;
    int r = service_get(cli, argv[0], &service, err);

    (void)argc;
    if (r < 0)
        return r;
    if ((r = service_find_replica(service, opts->replica, &replica, err)) == 0)
        return logs_show(cli, &opts->logs, output_text(replica, "session"), err);
    if (!is_number || service_find_session(cli, service, opts->replica, session, NULL) < 0)
        return r;
    return logs_show(cli, &opts->logs, session, err);
}

const struct cli_verb verb_service_logs = {
    .name = "service logs",
    .args = "SERVICE",
    .summary = "Show what a replica of a service has printed",
    .details = "The log of the newest replica, or of --replica; if all have ended, of the last.",
    .examples = "aliquot service logs digits -f --tail 20\n"
                "aliquot service logs digits --replica 3 --grep error",
    .opts = service_logs_opts,
    .opts_size = sizeof(struct service_logs_opts),
    .min_args = 1,
    .max_args = 1,
    .run = service_logs,
};

/* ---- ratio ---- */

static int service_ratio(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;
    json_auto_t *service = NULL, *body = NULL;
    const json_t *replica;
    char *end;
    double ratio = strtod(argv[2], &end);
    int r;

    (void)data;
    (void)argc;
    if (end == argv[2] || *end || !(ratio >= 0 && ratio <= 1000))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "RATIO is a number from 0 to 1000, such as 0.5, not '%.40s'", argv[2]);
    if ((r = service_get(cli, argv[0], &service, err)) < 0
        || (r = service_find_replica(service, argv[1], &replica, err)) < 0)
        return r;
    strbuf_adds(&rest, "/replicas/");
    url_encode(&rest, output_text(replica, "session"));
    body = json_pack("{s:f}", "ratio", ratio);
    return cli_thing_call(cli, METHOD_PATCH, &model_services, output_text(service, "id"), rest.data,
                          body, NULL, err);
}

const struct cli_verb verb_service_ratio = {
    .name = "service ratio",
    .args = "SERVICE REPLICA RATIO",
    .summary = "Change how many requests a replica gets, in relation to others",
    .details =
        "1 is as many as its share of a GPU stands for, 0.5 half as many, 0 none. REPLICA is\n"
        "a number of 'service info'. A replica that replaces it begins with 1.",
    .examples = "aliquot service ratio digits 2 0.1",
    .min_args = 3,
    .max_args = 3,
    .run = service_ratio,
};
