/* SPDX-License-Identifier: Apache-2.0 */
/* "admin audit-log": who changed what, and who logged in. */
#include <errno.h>

#include "base/clock.h"
#include "cli/list.h"
#include "cli/local_date.h"
#include "cli/request.h"
#include "cli/verbs.h"

struct audit_log_opts {
    struct list_opts list;
    const char *since, *until, *user, *action, *object, *domain;
};

static const struct cli_opt opts[] = {
    { 0, "since", CLI_STR, offsetof(struct audit_log_opts, since), "TIME",
      "only from then on: a local date, Unix time, or how long ago" },
    { 0, "user", CLI_STR, offsetof(struct audit_log_opts, user), "E-MAIL",
      "only of this user, or of this name that was tried", "user" },
    { 0, "action", CLI_STR, offsetof(struct audit_log_opts, action), "ACTION",
      "only this, e.g. login or modify-user", "action" },
    { 0, "until", CLI_STR, offsetof(struct audit_log_opts, until), "TIME",
      "only before then: the same" },
    { 0, "object", CLI_STR, offsetof(struct audit_log_opts, object), "OBJECT",
      "only of what has this kind, id or name, e.g. session", "object" },
    { 0, "domain", CLI_STR, offsetof(struct audit_log_opts, domain), "DOMAIN",
      "only of what is this domain's", "domain" },
    LIST_OPT_ROWS(struct audit_log_opts),
    CLI_OPT_END,
};

static const struct column columns[] = {
    { "seq", "SEQ", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "at", "AGE", COLUMN_TIME, 0 },
    { "user", "USER", COLUMN_TEXT, COLUMN_IS_NAME | COLUMN_MAY_SHRINK },
    { "user_id", "USER-ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "domain", "DOMAIN", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "access_key", "ACCESS-KEY", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "address", "ADDRESS", COLUMN_TEXT, 0 },
    { "action", "ACTION", COLUMN_TEXT, 0 },
    { "object_kind", "KIND", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "object_id", "OBJECT-ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "object_name", "OBJECT", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "object_domain", "OBJECT-DOMAIN", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "outcome", "OUTCOME", COLUMN_STATUS, 0 },
    { "times", "TIMES", COLUMN_NUMBER, 0 },
    { "detail", "DETAIL", COLUMN_TEXT, COLUMN_IS_WIDE | COLUMN_MAY_SHRINK | COLUMN_IS_LONG },
    { "request_id", "REQUEST-ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

static int audit_log_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct audit_log_opts *given = data;
    char since[CLOCK_ISO_MAX], until[CLOCK_ISO_MAX];

    (void)argc;
    (void)argv;
    if (local_date_check("--since", given->since, err) < 0
        || local_date_check("--until", given->until, err) < 0)
        return -err->code;
    strbuf_adds(&path, "/aliquot/v1/audit-log");
    cli_path_query(&path, "since", local_date_resolve(given->since, since));
    cli_path_query(&path, "until", local_date_resolve(given->until, until));
    cli_path_options(&path, opts, given);
    return list_show(cli, path.data, &given->list, columns, err);
}

const struct cli_verb verb_admin_audit_log = {
    .name = "admin audit-log",
    .args = "",
    .summary = "List who changed what, and who logged in or tried to",
    .details =
        "The newest first. Each change that was acknowledged is an entry: who asked, from where,\n"
        "what was changed, and in DETAIL of -o json and csv the changed members before and after,\n"
        "without secrets. Administrators of a domain see what was changed of it, and its logins.\n"
        "Of logins that were repeated within a minute, TIMES is how often. -n 0 with -o json or\n"
        "csv exports all. Entries are kept for 90 days, or as [retention] of manager.toml says.",
    .examples = "aliquot admin audit-log --since 1d --filter outcome=failed\n"
                "aliquot admin audit-log --user ann@example.com --object session -o json\n"
                "aliquot admin audit-log --action set-config -o json\n"
                "aliquot admin audit-log --since 7d -n 0 -o csv",
    .if_empty = "nothing was recorded",
    .opts = opts,
    .opts_size = sizeof(struct audit_log_opts),
    .run = audit_log_run,
};
