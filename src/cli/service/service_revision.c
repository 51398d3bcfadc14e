/* SPDX-License-Identifier: Apache-2.0 */
/* "service deploy", "revisions", "rollback": what replicas are made from. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/service/service.h"
#include "cli/service/service_rollout.h"
#include "cli/service/service_spec.h"
#include "cli/verbs.h"

/* ---- deploy ---- */

struct service_deploy_opts {
    struct service_spec_opts spec;
    struct cli_list unset;
    struct service_rollout_opts rollout;
    struct service_wait_opts waiting;
};

static const struct cli_opt deploy_opts[] = {
    SERVICE_SPEC_ROWS(struct service_deploy_opts),
    { 0, "unset", CLI_LIST, offsetof(struct service_deploy_opts, unset), "OPTION",
      "take back what this option says now, or 'command'; repeatable" },
    SERVICE_ROLLOUT_ROWS(struct service_deploy_opts),
    SERVICE_WAIT_ROWS(offsetof(struct service_deploy_opts, waiting)),
    CLI_OPT_END,
};

/* Remove the member that an option gave from the copy of the goal, and name it as null. */
static int service_deploy_unset(const char *name, json_t *goal, json_t *body, struct aq_error *err)
{
    const struct cli_opt *opt = cli_opt_find(deploy_opts, name, strlen(name));
    const char *member = strcmp(name, "command") == 0  ? "command"
                         : strcmp(name, "health") == 0 ? "health"
                         : opt                         ? opt->member
                                                       : NULL;

    if (!member)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--unset takes the name of an option of this command without its "
                            "dashes, such as env, or 'command', not '%.40s'",
                            name);
    (void)json_object_del(goal, member);
    (void)json_object_set_new(body, member, json_null());
    if (strcmp(member, "model") == 0)
        (void)json_object_set_new(body, "model_target", json_null());
    return 0;
}

static int64_t service_goal(const json_t *service)
{
    return json_integer_value(json_object_get(json_object_get(service, "revision"), "number"));
}

static int service_deploy_print(struct cli *cli, json_t *service, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (!output_is_human(&cli->output))
        return service_print(cli, service, err);
    strbuf_addf(&out, "revision %lld of service %s: its replicas replace the others\n",
                (long long)service_goal(service), output_text(service, "name"));
    return cli_print(&out, err);
}

static int service_deploy(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct service_deploy_opts *opts = data;
    json_auto_t *before = NULL, *body = json_object(), *service = NULL;
    json_t *goal;
    int r = service_get(cli, argv[0], &before, err);

    if (r < 0)
        return r;
    goal = json_object_get(before, "revision");
    for (size_t i = 0; r == 0 && i < opts->unset.count; i++)
        r = service_deploy_unset(opts->unset.items[i], goal, body, err);
    if (r == 0)
        r = service_rollout_add(&opts->rollout, body, err);
    if (r == 0)
        r = service_spec_add(deploy_opts, opts, &opts->spec, goal, argc - 1, argv + 1, body, err);
    if (r == 0 && json_object_size(body) == 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "name a change, such as --image python:3.13, or --note alone to start "
                            "all replicas again");
    if (r == 0)
        r = cli_thing_call_once(cli, &model_services, output_text(before, "id"), "/revisions", body,
                                &service, err);
    if (r < 0)
        return r;
    if ((r = service_deploy_print(cli, service, err)) < 0)
        return r;
    return service_wait_if(cli, &opts->waiting, output_text(before, "id"), service_goal(service),
                           err);
}

const struct cli_verb verb_service_deploy = {
    .name = "service deploy",
    .args = "SERVICE [COMMAND [ARG]...]",
    .summary = "Create a new revision of a service and replace its replicas",
    .details =
        "Options that are not given keep their values from the present revision, amount by\n"
        "amount and variable by variable; --unset OPTION removes one. Unless --strategy says\n"
        "otherwise, each new replica is ready before an old one drains, so clients notice\n"
        "nothing. If new replicas fail, the old revision comes back; 'service abort' stops the\n"
        "rollout sooner.",
    .examples = "aliquot service deploy digits --image python:3.13 --wait\n"
                "aliquot service deploy digits -r mem=4g -e LOG=debug --note 'more memory'",
    .opts = deploy_opts,
    .opts_size = sizeof(struct service_deploy_opts),
    .min_args = 1,
    .max_args = -1,
    .run = service_deploy,
};

/* ---- revisions ---- */

static const struct column revision_columns[] = {
    { "number", "REVISION", COLUMN_NUMBER, COLUMN_IS_NAME },
    { "is_goal", "GOAL", COLUMN_BOOL, 0 },
    { "image", "IMAGE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "model_name", "MODEL", COLUMN_TEXT, 0 },
    { "resources", "RESOURCES", COLUMN_SLOTS, 0 },
    { "created_at", "AGE", COLUMN_TIME, 0 },
    { "note", "NOTE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "command", "COMMAND", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "runtime", "RUNTIME", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "port", "PORT", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "created_by", "BY", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "definition", "DEFINITION", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "health", "HEALTH", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "environ", "ENVIRON", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "mounts", "MOUNTS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    COLUMN_END,
};

static int service_revisions(struct cli *cli, void *data, int argc, char **argv,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    (void)data;
    (void)argc;
    cli_thing_path(&model_services, argv[0], "/revisions", &path);
    return list_show_whole(cli, path.data, "items", revision_columns, err);
}

const struct cli_verb verb_service_revisions = {
    .name = "service revisions",
    .args = "SERVICE",
    .summary = "List the revisions of a service, newest first",
    .examples = "aliquot service revisions digits -o wide",
    .min_args = 1,
    .max_args = 1,
    .run = service_revisions,
};

/* ---- rollback ---- */

struct service_rollback_opts {
    const char *note;
    struct service_wait_opts waiting;
};

static const struct cli_opt rollback_opts[] = {
    { 0, "note", CLI_STR, offsetof(struct service_rollback_opts, note), "TEXT",
      "reason of the change; 'service history' shows it", "note" },
    SERVICE_WAIT_ROWS(offsetof(struct service_rollback_opts, waiting)),
    CLI_OPT_END,
};

static int service_rollback(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    const struct service_rollback_opts *opts = data;
    json_auto_t *body = json_object(), *service = NULL;
    int r = cli_options_add(rollback_opts, opts, body, err);

    if (r < 0)
        return r;
    if (argc == 2 && (!*argv[1] || strspn(argv[1], "0123456789") != strlen(argv[1])))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "REVISION is a number such as 3, not '%.40s'", argv[1]);
    if (argc == 2)
        (void)json_object_set_new(body, "revision", json_integer(strtoll(argv[1], NULL, 10)));
    r = cli_thing_call_once(cli, &model_services, argv[0], "/rollback", body, &service, err);
    if (r < 0 || (r = service_print_line(cli, service, err)) < 0)
        return r;
    return service_wait_if(cli, &opts->waiting, argv[0], service_goal(service), err);
}

const struct cli_verb verb_service_rollback = {
    .name = "service rollback",
    .args = "SERVICE [REVISION]",
    .summary = "Make an earlier revision the goal again",
    .details = "Without REVISION, the previous one. Replicas are replaced as by 'service deploy';\n"
               "those of the earlier revision that still run are kept.",
    .examples = "aliquot service rollback digits --wait\n"
                "aliquot service rollback digits 3",
    .opts = rollback_opts,
    .opts_size = sizeof(struct service_rollback_opts),
    .min_args = 1,
    .max_args = 2,
    .run = service_rollback,
};
