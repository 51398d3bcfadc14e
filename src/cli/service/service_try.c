/* SPDX-License-Identifier: Apache-2.0 */
/* "service try": whether a model would serve. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/background_task.h"
#include "cli/service/service.h"
#include "cli/service/service_spec.h"
#include "cli/verbs.h"

#define TRY_PATH SERVICES_PATH "/_/try"

struct service_try_opts {
    struct service_spec_opts spec;
    const char *group, *resource_group;
};

static const struct cli_opt try_opts[] = {
    SERVICE_SPEC_ROWS(struct service_try_opts),
    { 'g', "project", CLI_STR, offsetof(struct service_try_opts, group), "PROJECT",
      "project whose limits apply", "group" },
    { 0, "resource-group", CLI_STR, offsetof(struct service_try_opts, resource_group),
      "RESOURCE-GROUP", "group of agents the replica may run on", "resource_group" },
    CLI_OPT_END,
};

/* Why it failed, with the last lines of its log. */
static int service_try_fail(const char *message)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    strbuf_adds(&out, "aliquot: the trial failed: ");
    utf8_write_printable(message, strlen(message), &out);
    if (out.data[out.len - 1] != '\n')
        strbuf_addc(&out, '\n');
    (void)fwrite(out.data, 1, out.len, stderr);
    return CLI_EXIT_FAILURE;
}

static int service_try(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct service_try_opts *opts = data;
    json_auto_t *body = json_object(), *answer = NULL;
    int64_t begun_usec = clock_monotonic_usec();
    char message[BACKGROUND_MESSAGE_MAX];
    int r = service_spec_add(try_opts, opts, &opts->spec, NULL, argc, argv, body, err);

    if (r == 0)
        r = service_add_usual(cli, body, err);
    if (r == 0)
        r = cli_call(cli, METHOD_POST, TRY_PATH, body, &answer, err);
    if (r < 0)
        return r;
    r = background_task_follow(cli, answer, "task_id", message, err);
    if (r == -EREMOTEIO)
        return service_try_fail(message);
    if (r == 0)
        cli_note(cli, "ready after %.1f s; the replica was ended again",
                 (double)(clock_monotonic_usec() - begun_usec) / USEC_PER_SEC);
    return r;
}

const struct cli_verb verb_service_try = {
    .name = "service try",
    .args = "[COMMAND [ARG]...]",
    .summary = "Start one replica, wait until it is ready, and end it",
    .details =
        "Takes the options of 'service create' that concern a replica. Exits with 1 if the\n"
        "replica fails or is not ready within --ready-timeout, and prints the reason with the\n"
        "end of its log. Nothing is left of it: it has a service of its own, 'trial-...', with\n"
        "no token, which is removed afterwards, also after Ctrl-C or a restart of the manager.",
    .examples = "aliquot service try --model digits --image python:3.12 -r cuda.shares=0.25 \\\n"
                "    --port 8000 --health /health -- python3 /models/serve.py",
    .opts = try_opts,
    .opts_size = sizeof(struct service_try_opts),
    .min_args = 0,
    .max_args = -1,
    .run = service_try,
};
