/* SPDX-License-Identifier: Apache-2.0 */
/* "reservation": amounts of a cluster that are kept for projects and users during a time. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "cli/list.h"
#include "cli/local_date.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define RESERVATIONS_PATH "/aliquot/v1/reservations"

static const struct cli_things reservations = { RESERVATIONS_PATH "/", NULL };

static const struct column reservation_columns[] = {
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "state", "STATE", COLUMN_STATUS, 0 },
    { "start", "START", COLUMN_CLOCK, 0 },
    { "end", "END", COLUMN_CLOCK, 0 },
    { "duration", "DURATION", COLUMN_SPAN, COLUMN_IS_WIDE },
    { "resources", "RESOURCES", COLUMN_SLOTS, 0 },
    { "nodes", "NODES", COLUMN_NUMBER, 0 },
    { "for", "FOR", COLUMN_NAMES, COLUMN_MAY_SHRINK },
    { "agents", "AGENTS", COLUMN_NAMES, COLUMN_IS_WIDE },
    { "missing_nodes", "MISSING", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "release_unused", "RELEASE-UNUSED", COLUMN_SPAN, COLUMN_IS_EXTRA },
    { "ignore_sessions", "IGNORE-SESSIONS", COLUMN_BOOL, COLUMN_IS_EXTRA },
    { "created_by", "CREATED-BY", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "created_at", "CREATED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "finished_at", "FINISHED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "reason", "REASON", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "sessions", "SESSIONS", COLUMN_NAMES, COLUMN_IS_EXTRA },
    { "places", "PLACES", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    COLUMN_END,
};

/* ---- create, update ---- */

struct reservation_opts {
    const char *name, *start, *end, *agents, *resource_group;
    struct cli_int duration, nodes, release_unused;
    struct cli_list resources, members;
    bool ignore_sessions;
};

#define AT(member) offsetof(struct reservation_opts, member)
/* clang-format off */
#define RESERVATION_ROWS                                                                           \
    { 's', "start", CLI_STR, AT(start), "TIME",                                                    \
      "from this date (local time), or this long from now; default now" },                         \
    { 'd', "duration", CLI_DURATION, AT(duration), "TIME", "for so long", "duration" },            \
    { 0, "end", CLI_STR, AT(end), "TIME", "until this date (local time), instead of --duration" }, \
    { 'r', "resource", CLI_LIST, AT(resources), "SLOT=AMOUNT",                                     \
      "what to keep on each node: cuda.device=4, cpu=8, mem=32g; repeatable", "resources" },       \
    { 'N', "nodes", CLI_INT, AT(nodes), "N", "on each of so many agents; default 1", "nodes" },    \
    { 0, "agents", CLI_STR, AT(agents), "AGENT,...", "only on these agents; default on any" },     \
    { 0, "for", CLI_LIST, AT(members), "project:NAME|user:EMAIL",                                  \
      "whose sessions may run in it; repeatable", "for" },                                         \
    { 0, "release-unused", CLI_DURATION, AT(release_unused), "TIME",                               \
      "end it when no session of it has run for so long; 0 = never", "release_unused" },           \
    { 0, "ignore-sessions", CLI_FLAG, AT(ignore_sessions), NULL,                                   \
      "even if sessions may still hold the amounts at the start", "ignore_sessions" }
/* clang-format on */

static const struct cli_opt reservation_create_opts[] = {
    RESERVATION_ROWS,
    { 0, "resource-group", CLI_STR, AT(resource_group), "RESOURCE-GROUP",
      "on agents of this group; default \"default\"", "resource_group" },
    CLI_OPT_END,
};

static const struct cli_opt reservation_update_opts[] = {
    RESERVATION_ROWS,
    { 0, "name", CLI_STR, AT(name), "NAME", "another name", "name" },
    CLI_OPT_END,
};
#undef AT

/* "a,b" as a list. */
static json_t *reservation_split_agents(const char *text)
{
    json_t *list = json_array();

    while (*text) {
        size_t len = strcspn(text, ",");

        if (len)
            (void)json_array_append_new(list, json_stringn(text, len));
        text += len + (text[len] == ',');
    }
    return list;
}

/* What the rows of the options do not say by themselves. */
static int reservation_add_options(const struct cli_opt *rows, const struct reservation_opts *opts,
                                   json_t *body, struct aq_error *err)
{
    char start[CLOCK_ISO_MAX], end[CLOCK_ISO_MAX];
    int r = cli_options_add(rows, opts, body, err);

    if (r < 0)
        return r;
    if (opts->end && opts->duration.is_set)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--end and --duration exclude each other");
    if (opts->start
        && json_object_set_new(body, "start", json_string(local_date_resolve(opts->start, start)))
               < 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--start is not UTF-8");
    if (opts->end
        && json_object_set_new(body, "end", json_string(local_date_resolve(opts->end, end))) < 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--end is not UTF-8");
    if (opts->agents)
        (void)json_object_set_new(body, "agents", reservation_split_agents(opts->agents));
    return 0;
}

static int reservation_create(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    const struct reservation_opts *opts = data;
    json_auto_t *body = json_pack("{s:s}", "name", argv[0]), *answer = NULL;
    int r;

    (void)argc;
    if (!body)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the name is not UTF-8");
    if (!opts->resources.count)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--resource is missing: what to keep, such as cuda.device=4");
    if (!opts->members.count)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--for is missing: project:NAME or user:EMAIL may use the reservation");
    if (!opts->end && !opts->duration.is_set)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--duration or --end is missing: how long, such as 3h, or until when");
    r = reservation_add_options(reservation_create_opts, opts, body, err);
    if (r == 0)
        r = cli_call_once(cli, RESERVATIONS_PATH, body, &answer, err);
    return r < 0 ? r : record_print(cli, reservation_columns, answer, err);
}

const struct cli_verb verb_reservation_create = {
    .name = "reservation create",
    .args = "NAME",
    .summary = "Keep amounts for projects and users during a time",
    .details =
        "Other sessions use these amounts before the start only if their time limit ends them\n"
        "by then. Sessions with --reservation NAME start in the window, on these amounts, and\n"
        "end with it. It is refused where other reservations, or sessions that may still run\n"
        "at the start, leave too little. For superadmins, and administrators of a domain for\n"
        "projects and users of the domain.",
    .examples = "aliquot reservation create exam --start 2026-12-01T09:00 --duration 3h \\\n"
                "    -r cuda.device=4 --for project:class\n"
                "aliquot run --reservation exam -r cuda.device=1 -- python3 train.py",
    .opts = reservation_create_opts,
    .opts_size = sizeof(struct reservation_opts),
    .min_args = 1,
    .max_args = 1,
    .run = reservation_create,
};

static int reservation_update(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    json_auto_t *body = json_object(), *answer = NULL;
    int r = reservation_add_options(reservation_update_opts, data, body, err);

    (void)argc;
    if (r == 0 && json_object_size(body) == 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "name a change, such as --duration 4h");
    if (r == 0)
        r = cli_thing_call(cli, METHOD_PATCH, &reservations, argv[0], "", body, &answer, err);
    return r < 0 ? r : record_print(cli, reservation_columns, answer, err);
}

const struct cli_verb verb_reservation_update = {
    .name = "reservation update",
    .args = "NAME",
    .summary = "Change a reservation",
    .details = "Once it has begun, its start, amounts, nodes and agents stay. --for replaces all\n"
               "projects and users.",
    .examples = "aliquot reservation update exam --start 2026-12-02T09:00",
    .opts = reservation_update_opts,
    .opts_size = sizeof(struct reservation_opts),
    .min_args = 1,
    .max_args = 1,
    .run = reservation_update,
};

/* ---- ls, show ---- */

struct reservation_ls_opts {
    bool all;
};

static const struct cli_opt reservation_ls_opts[] = {
    { 'a', "all", CLI_FLAG, offsetof(struct reservation_ls_opts, all), NULL,
      "also those that have ended, were released or canceled", "all" },
    CLI_OPT_END,
};

static int reservation_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    (void)argc;
    (void)argv;
    strbuf_adds(&path, RESERVATIONS_PATH);
    cli_path_options(&path, reservation_ls_opts, data);
    return list_show_whole(cli, path.data, "items", reservation_columns, err);
}

const struct cli_verb verb_reservation_ls = {
    .name = "reservation ls",
    .args = "",
    .summary = "List reservations that you may use or change",
    .examples = "aliquot reservation ls --all",
    .if_empty = "you have no reservations; administrators create them: aliquot reservation create",
    .opts = reservation_ls_opts,
    .opts_size = sizeof(struct reservation_ls_opts),
    .run = reservation_ls,
};

static int reservation_show(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *row = NULL;
    const json_t *place;
    size_t i;
    int r;

    (void)data;
    (void)argc;
    cli_thing_path(&reservations, argv[0], "", &path);
    r = record_show(cli, path.data, reservation_columns, NULL, &row, err);
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(row, "places"), i, place) {
        const char *missing = json_string_value(json_object_get(place, "missing"));

        if (missing)
            cli_note(cli, "agent %s is %s: what the reservation has there is missing",
                     json_string_value(json_object_get(place, "agent")), missing);
    }
    return r;
}

const struct cli_verb verb_reservation_show = {
    .name = "reservation show",
    .args = "NAME",
    .summary = "Show a reservation, its sessions, and which agents are missing",
    .details = "NAME may be an id. Of several that have ended it is the last.",
    .examples = "aliquot reservation show exam -o json",
    .min_args = 1,
    .max_args = 1,
    .run = reservation_show,
};

/* ---- cancel ---- */

struct reservation_cancel_opts {
    const char *reason;
};

static const struct cli_opt reservation_cancel_opts[] = {
    { 0, "reason", CLI_STR, offsetof(struct reservation_cancel_opts, reason), "TEXT",
      "shown with the reservation", "reason" },
    CLI_OPT_END,
};

static int reservation_cancel(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    json_auto_t *body = json_object();
    int r = cli_options_add(reservation_cancel_opts, data, body, err);

    return r < 0
               ? r
               : cli_things_call(cli, METHOD_POST, &reservations, "/cancel", body, argc, argv, err);
}

const struct cli_verb verb_reservation_cancel = {
    .name = "reservation cancel",
    .args = "NAME...",
    .summary = "Cancel reservations",
    .details = "Their amounts are free at once. Sessions that run in them go on as others do;\n"
               "those that wait are cancelled.",
    .examples = "aliquot reservation cancel --reason \"exam was moved\" exam",
    .opts = reservation_cancel_opts,
    .opts_size = sizeof(struct reservation_cancel_opts),
    .min_args = 1,
    .max_args = -1,
    .run = reservation_cancel,
};
