/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on sessions (ls, info, rename, resize, restart), and what the others share. */
#include "cli/session/session.h"

#include <errno.h>
#include <string.h>

#include "base/uuid.h"
#include "cli/list.h"
#include "cli/output/row_filter.h"
#include "cli/request.h"
#include "cli/session/array.h"
#include "cli/session/summary.h"
#include "cli/verbs.h"
#include "model/session.h"
#include "model/status.h"

const struct column session_columns[] = {
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "job_id", "JOB", COLUMN_NUMBER, COLUMN_IS_EXTRA },
    { "type", "TYPE", COLUMN_TEXT, 0 },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "result", "RESULT", COLUMN_STATUS, COLUMN_IS_WIDE },
    { "exit_code", "EXIT", COLUMN_NUMBER, 0 },
    { "resources", "RESOURCES", COLUMN_SLOTS, 0 },
    { "requested_slots", "REQUESTED", COLUMN_SLOTS, COLUMN_IS_EXTRA },
    { "occupied_slots", "OCCUPIED", COLUMN_SLOTS, COLUMN_IS_EXTRA },
    { "agents", "AGENTS", COLUMN_NAMES, COLUMN_IS_WIDE },
    { "priority", "PRIORITY", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "user", "USER", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "group", "PROJECT", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "domain", "DOMAIN", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "access_key", "ACCESS-KEY", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "image", "IMAGE", COLUMN_TEXT, COLUMN_IS_WIDE | COLUMN_MAY_SHRINK },
    { "tag", "TAG", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "cluster_mode", "CLUSTER-MODE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "cluster_size", "CLUSTER-SIZE", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "cluster_size_min", "CLUSTER-SIZE-MIN", COLUMN_NUMBER, COLUMN_IS_EXTRA | COLUMN_IS_LONG },
    { "on_failure", "ON-FAILURE", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_LONG },
    { "on_node_loss", "ON-NODE-LOSS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_LONG },
    { "reservation", "RESERVATION", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_LONG },
    { "wait_for_capacity", "WAIT-FOR-CAPACITY", COLUMN_BOOL, COLUMN_IS_EXTRA | COLUMN_IS_LONG },
    { "created_at", "AGE", COLUMN_TIME, 0 },
    { "status_changed", "CHANGED", COLUMN_TIME, COLUMN_IS_WIDE },
    { "starts_at", "STARTS", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "started_at", "STARTED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "timeout_sec", "TIME-LIMIT", COLUMN_SPAN, COLUMN_IS_EXTRA | COLUMN_IS_LONG },
    { "ends_by", "ENDS-BY", COLUMN_TIME, COLUMN_IS_EXTRA | COLUMN_IS_LONG },
    { "scheduled_at", "SCHEDULED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "terminated_at", "ENDED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "last_access", "LAST-ACCESS", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "idle_ends_at", "IDLE-END", COLUMN_TIME, COLUMN_IS_WIDE },
    { "reason", "REASON", COLUMN_REASON, COLUMN_MAY_SHRINK },
    { "text", "TEXT", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    { "retry", "RETRY", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    { "retry_of", "RETRY-OF", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_LONG },
    { "attempts", "ATTEMPTS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    { "summary", "SUMMARY", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    { "mounts", "MOUNTS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    { "dependencies", "DEPENDENCIES", COLUMN_TEXT,
      COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    { "app_traffic", "APP-TRAFFIC", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "idle", "IDLE", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "outputs", "OUTPUTS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    { "kernels", "KERNELS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    COLUMN_END,
};

static const struct column kernel_columns[] = {
    { "id", "KERNEL", COLUMN_TEXT, 0 },
    { "hostname", "HOSTNAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "role", "ROLE", COLUMN_TEXT, 0 },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "agent", "AGENT", COLUMN_TEXT, 0 },
    { "exit_code", "EXIT", COLUMN_NUMBER, 0 },
    { "requested_slots", "RESOURCES", COLUMN_SLOTS, 0 },
    { "ports", "PORTS", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "reason", "REASON", COLUMN_REASON, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static const struct column attempt_columns[] = {
    { "attempt", "ATTEMPT", COLUMN_NUMBER, COLUMN_IS_NAME },
    { "started_at", "STARTED", COLUMN_CLOCK, 0 },
    { "ended_at", "ENDED", COLUMN_CLOCK, 0 },
    { "agent", "AGENT", COLUMN_TEXT, 0 },
    { "exit_code", "EXIT", COLUMN_NUMBER, 0 },
    { "reason", "REASON", COLUMN_REASON, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static const struct column dependency_columns[] = {
    { "name", "WAITS-FOR", COLUMN_TEXT, COLUMN_IS_NAME },
    { "condition", "CONDITION", COLUMN_TEXT, 0 },
    { "state", "STATE", COLUMN_TEXT, 0 },
    { "session", "ID", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "array", "ARRAY", COLUMN_TEXT, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static const struct column mount_columns[] = {
    { "name", "FOLDER", COLUMN_TEXT, COLUMN_IS_NAME },
    { "path", "PATH", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "target", "MOUNTED-AT", COLUMN_TEXT, 0 },
    { "mode", "MODE", COLUMN_TEXT, 0 },
    { "host", "HOST", COLUMN_TEXT, 0 },
    { "folder", "ID", COLUMN_TEXT, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static void session_add_path(const struct cli *cli, struct strbuf *path, const char *base,
                             const char *name, const char *rest)
{
    strbuf_adds(path, base);
    url_encode(path, name);
    strbuf_adds(path, rest);
    cli_path_query(path, "owner_access_key", cli->globals.owner);
}

void session_path(const struct cli *cli, struct strbuf *path, const char *name, const char *rest)
{
    session_add_path(cli, path, "/aliquot/v1/sessions/", name, rest);
}

void session_old_path(const struct cli *cli, struct strbuf *path, const char *name,
                      const char *rest)
{
    session_add_path(cli, path, "/session/", name, rest);
}

int session_wrap_error(struct aq_error *err, const char *name)
{
    AQ_CLEANUP(aq_freep) char *quoted = aq_format("'%s'", name);

    return strstr(err->text, quoted) ? -err->code : aq_error_wrap(err, "session '%s'", name);
}

int session_fail(struct cli *cli, const char *name, struct aq_error *err)
{
    json_auto_t *array = NULL;

    if (err->code != ENOENT || array_get(cli, name, &array, NULL) < 0)
        return session_wrap_error(err, name);
    return aq_fail(err, ENOENT,
                   "'%s' is an array; name one of its elements, such as '%s[%lld]'; 'aliquot ps "
                   "%s' lists them",
                   name, name, strtoll(output_text(array, "indices"), NULL, 10), name);
}

int session_get(struct cli *cli, const char *name, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    struct aq_error why = { .code = 0 };
    int r;

    session_path(cli, &path, name, "");
    if (!err)
        err = &why;
    r = cli_call(cli, METHOD_GET, path.data, NULL, ret, err);
    return r < 0 ? session_fail(cli, name, err) : 0;
}

int session_read(const struct cli *cli, const json_t *session, struct follow_session *ret,
                 struct aq_error *err)
{
    const char *id = json_string_value(json_object_get(session, "id"));
    const char *full = json_string_value(json_object_get(session, "name"));
    struct uuid uuid;

    /* these go into paths, file names, and commands that users are shown to copy */
    if (!id || !full || uuid_parse(id, &uuid) < 0 || session_name_check_any(full) < 0)
        return aq_fail(err, EPROTO, "the manager's answer has no valid id and name of the session");
    *ret = (struct follow_session){ .id = "" };
    (void)snprintf(ret->id, sizeof(ret->id), "%s", id);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", full);
    (void)snprintf(ret->owner, sizeof(ret->owner), "%s",
                   cli->globals.owner ? cli->globals.owner : "");
    return 0;
}

int session_resolve(struct cli *cli, const char *name, struct follow_session *ret,
                    struct aq_error *err)
{
    json_t *session = NULL;
    int r = session_get(cli, name, &session, err);

    if (r == 0)
        r = session_read(cli, session, ret, err);
    json_decref(session);
    return r;
}

const json_t *session_exit_code(const json_t *session)
{
    const json_t *failure = json_object_get(session, "failure");
    const json_t *code = json_object_get(json_is_object(failure) ? failure : session, "exit_code");

    return json_is_integer(code) ? code : NULL;
}

/* 0 if it runs, 1 if it will or may, -ECHILD if it has ended. */
static int session_check_runs(struct cli *cli, const json_t *session,
                              const struct follow_session *who, struct aq_error *err)
{
    const char *status = json_string_value(json_object_get(session, "status"));
    const json_t *code = session_exit_code(session);
    struct follow_end end = { .reason = json_string_value(json_object_get(session, "reason")),
                              .has_exit = code != NULL,
                              .exit_code = (int)json_integer_value(code) & 255 };

    if (!status || session_status_parse(status, &end.status) < 0)
        return aq_fail(err, EPROTO, "the manager's answer has no status");
    if (session_is_terminal(end.status))
        return follow_fail_ended(cli, who, &end, err);
    return end.status != SESSION_RUNNING && end.status != SESSION_RUNNING_DEGRADED;
}

int session_await(struct cli *cli, const char *name, struct follow_session *ret,
                  struct aq_error *err)
{
    json_t *session = NULL;
    int r = session_get(cli, name, &session, err), status;

    if (r == 0)
        r = session_read(cli, session, ret, err);
    if (r == 0)
        r = session_check_runs(cli, session, ret, err);
    json_decref(session);
    return r == 1 ? follow_sessions(cli, ret, 1, FOLLOW_START, 0, &status, err) : r;
}

int session_await_kernel(struct cli *cli, const char *name, const char *kernel,
                         struct follow_session *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r = session_await(cli, name, ret, err);

    ret->kernel = kernel;
    if (r < 0 || !kernel)
        return r;
    /* refused, a WebSocket would not say which kernels there are; any other request does */
    session_path(cli, &path, ret->id, "/statistics");
    cli_path_query(&path, "kernel", kernel);
    return cli_call(cli, METHOD_GET, path.data, NULL, NULL, err);
}

/* "web 30001->8080, 9000 30002->9000"; of what no port of the node leads to, nothing */
static json_t *session_ports_text(const json_t *services)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const json_t *service, *outside;
    size_t i, p;

    json_array_foreach(services, i, service)
        json_array_foreach(json_object_get(service, "host_ports"), p, outside)
            strbuf_addf(&text, "%s%s %lld->%lld", text.len ? ", " : "",
                        json_is_string(json_object_get(service, "name"))
                            ? json_string_value(json_object_get(service, "name"))
                            : "",
                        (long long)json_integer_value(outside),
                        (long long)json_integer_value(
                            json_array_get(json_object_get(service, "container_ports"), p)));
    return text.len ? json_string(text.data) : json_null();
}

/* Add "ports", which the columns show, to its kernels. */
static void session_adapt(json_t *session)
{
    json_t *kernel;
    size_t i;

    json_array_foreach(json_object_get(session, "kernels"), i, kernel)
        (void)json_object_set_new(kernel, "ports",
                                  session_ports_text(json_object_get(kernel, "service_ports")));
}

/* ---- ls ---- */

struct session_ls_opts {
    struct list_opts list;
    bool all, everyone, elements;
    const char *status;
};

static const struct cli_opt ls_opts[] = {
    { 'a', "all", CLI_FLAG, offsetof(struct session_ls_opts, all), NULL,
      "also those that have ended" },
    { 's', "status", CLI_STR, offsetof(struct session_ls_opts, status), "STATUS,...",
      "only these, e.g. PENDING,RUNNING" },
    { 'A', "everyone", CLI_FLAG, offsetof(struct session_ls_opts, everyone), NULL,
      "sessions of all users (administrators)" },
    { 0, "elements", CLI_FLAG, offsetof(struct session_ls_opts, elements), NULL,
      "elements of arrays each, in place of one line for an array" },
    LIST_OPT_ROWS(struct session_ls_opts),
    CLI_OPT_END,
};

static void session_add_live_statuses(struct strbuf *path)
{
    bool is_first = true;

    strbuf_adds(path, "?status=");
    for (int s = 0; s < SESSION_STATUS_COUNT; s++) {
        if (session_is_terminal(s))
            continue;
        strbuf_addf(path, "%s%s", is_first ? "" : ",", session_status_name(s));
        is_first = false;
    }
}

void session_list_path(const struct cli *cli, struct strbuf *path, const char *status, bool ended,
                       bool everyone)
{
    strbuf_adds(path, "/aliquot/v1/sessions");
    if (status)
        cli_path_query(path, "status", status);
    else if (!ended)
        session_add_live_statuses(path);
    cli_path_query(path, "all", everyone ? "true" : NULL);
    cli_path_query(path, "owner_access_key", cli->globals.owner);
}

/* Those of "--filter status=...": the manager then reads no others. */
static void session_filtered_statuses(const struct list_opts *list, struct strbuf *out)
{
    for (size_t i = 0; i < list->filters.count; i++) {
        const char *wanted = row_filter_wanted(session_columns, list->filters.items[i], "status");

        if (wanted)
            strbuf_addf(out, "%s%s", out->len ? "," : "", wanted);
    }
}

/* A filter or order in the manager's words for sessions. */
static bool session_ls_is_narrowed(const struct list_opts *list)
{
    for (size_t i = 0; i < list->filters.count; i++)
        if (!row_filter_is_ours(list->filters.items[i]))
            return true;
    return list->order != NULL;
}

struct session_ls_arrays {
    const struct session_ls_opts *opts;
    const char *status; /* NULL = unsaid */
};

/* list_more_fn */
static int session_ls_list_arrays(struct cli *cli, const void *data, json_t **ret,
                                  struct aq_error *err)
{
    const struct session_ls_arrays *arrays = data;

    return array_list_rows(cli, arrays->status, arrays->opts->all, arrays->opts->everyone, ret,
                           err);
}

static int session_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf statuses = STRBUF_INIT;
    const struct session_ls_opts *opts = data;
    struct session_ls_arrays arrays = { opts, NULL };
    json_auto_t *array = NULL;
    int r = argc ? array_get(cli, argv[0], &array, err) : 0;

    if (r < 0)
        return r;
    strbuf_adds(&statuses, opts->status ? opts->status : "");
    if (!opts->status)
        session_filtered_statuses(&opts->list, &statuses);
    arrays.status = statuses.len ? statuses.data : NULL;
    session_list_path(cli, &path, arrays.status, opts->all || argc, opts->everyone);
    cli_path_query(&path, "array",
                   argc             ? json_string_value(json_object_get(array, "id"))
                   : opts->elements ? NULL
                                    : "none");
    if (argc && !opts->list.order)
        cli_path_query(&path, "order", "array_index");
    return list_show_fields(cli, path.data, &opts->list, session_columns, session_adapt,
                            argc || opts->elements || session_ls_is_narrowed(&opts->list)
                                ? NULL
                                : session_ls_list_arrays,
                            &arrays, err);
}

#define LS_DETAILS                                                                    \
    "The newest come first. REASON says why a session waits or why it ended;\n"       \
    "'aliquot session why NAME' says it in full. --filter takes any column by the\n"  \
    "name that it has here or with -o json: name=train-*, exit!=0, 'age>2h',\n"       \
    "'resources.cpu>=4', reason~memory; or a line of the manager's own language,\n"   \
    "such as 'name ilike \"%train%\"'. An array has one line; its name as argument\n" \
    "lists its elements."

#define LS_IF_EMPTY                                                              \
    "no session waits or runs; start one: aliquot run 'echo hello'; those that " \
    "ended: aliquot ps --all"

const struct cli_verb verb_session_ls = {
    .name = "session ls",
    .args = "[ARRAY]",
    .max_args = 1,
    .summary = "List sessions",
    .details = LS_DETAILS,
    .examples = "aliquot session ls\n"
                "aliquot session ls --all --sort age -n 20\n"
                "aliquot session ls --filter status=running --filter 'age>1h'\n"
                "aliquot session ls -o json --columns name,status,exit_code",
    .if_empty = LS_IF_EMPTY,
    .opts = ls_opts,
    .opts_size = sizeof(struct session_ls_opts),
    .run = session_ls,
};

const struct cli_verb verb_ps = {
    .name = "ps",
    .args = "[ARRAY]",
    .max_args = 1,
    .summary = "List sessions (the same as 'session ls')",
    .details = LS_DETAILS,
    .examples = "aliquot ps\n"
                "aliquot ps --watch 2s\n"
                "aliquot ps --filter status=running,pending --sort -age\n"
                "aliquot ps sweep --filter result=failure\n"
                "aliquot rm --yes $(aliquot ps -q --filter status=pending)",
    .if_empty = LS_IF_EMPTY,
    .opts = ls_opts,
    .opts_size = sizeof(struct session_ls_opts),
    .run = session_ls,
};

/* ---- info ---- */

/* Which programs use GPUs past their part of them. */
static void session_write_violations(const json_t *kernels, struct strbuf *out)
{
    const json_t *kernel;
    size_t i;

    json_array_foreach(kernels, i, kernel) {
        const char *hostname = json_string_value(json_object_get(kernel, "hostname"));
        const char *violations = json_string_value(json_object_get(kernel, "gpu_misuse"));

        if (violations)
            strbuf_addf(out, "\nA GPU is misused in %s: %s\n", hostname ? hostname : "",
                        violations);
    }
}

/* "Devices of main1: cuda.shares 0.20 of GPU-1, 0.20 of GPU-2" */
static void session_write_devices(const json_t *kernels, struct strbuf *out)
{
    const json_t *kernel, *devices, *amount;
    const char *slot, *device;
    size_t i;

    json_array_foreach(kernels, i, kernel) {
        const char *hostname = json_string_value(json_object_get(kernel, "hostname"));
        const char *separator = "";

        if (!json_object_size(json_object_get(kernel, "devices")))
            continue;
        strbuf_addf(out, "\nDevices of %s:", hostname ? hostname : "");
        json_object_foreach(json_object_get(kernel, "devices"), slot, devices) {
            strbuf_addf(out, "%s %s ", separator, slot);
            separator = "";
            json_object_foreach((json_t *)(uintptr_t)devices, device, amount) {
                strbuf_addf(out, "%s%s of %s", separator,
                            json_is_string(amount) ? json_string_value(amount) : "", device);
                separator = ", ";
            }
            separator = ";";
        }
        strbuf_addc(out, '\n');
    }
}

int session_dependencies_print(struct cli *cli, const json_t *row, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const json_t *dependencies = json_object_get(row, "dependencies");
    struct output plain = cli->output;
    int r;

    if (!output_is_human(&cli->output) || cli->output.columns || !json_array_size(dependencies))
        return 0;
    strbuf_addc(&out, '\n');
    plain.sort = NULL;
    r = output_list(&plain, dependency_columns, dependencies, &out, err);
    return r < 0 ? r : cli_print(&out, err);
}

/* Machine formats carry kernels and mounts as members, users get tables. */
static int session_print_parts(struct cli *cli, const json_t *session, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const json_t *mounts = json_object_get(session, "mounts");
    const json_t *attempts = json_object_get(session, "attempts");
    struct output plain = cli->output;
    int r;

    if (!output_is_human(&cli->output) || cli->output.columns)
        return 0;
    strbuf_addc(&out, '\n');
    plain.sort = NULL;
    r = output_list(&plain, kernel_columns, json_object_get(session, "kernels"), &out, err);
    if (r == 0 && json_array_size(attempts) > 1) {
        strbuf_addc(&out, '\n');
        r = output_list(&plain, attempt_columns, attempts, &out, err);
    }
    summary_write(json_object_get(session, "summary"), "\n", &out);
    if (r == 0 && json_array_size(mounts)) {
        strbuf_addc(&out, '\n');
        r = output_list(&plain, mount_columns, mounts, &out, err);
    }
    session_write_devices(json_object_get(session, "kernels"), &out);
    session_write_violations(json_object_get(session, "kernels"), &out);
    return r < 0 ? r : cli_print(&out, err);
}

static int session_info(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++) {
        json_t *session = NULL;

        r = session_get(cli, argv[i], &session, err);
        if (r == -ENOENT && array_show(cli, argv[i], NULL) == 0) {
            r = 0;
            continue;
        }
        session_adapt(session);
        if (r == 0 && output_is_human(&cli->output) && !cli->output.columns)
            (void)json_object_del(session, "resources"); /* one of the two that follow */
        if (r == 0)
            r = record_print(cli, session_columns, session, err);
        if (r == 0)
            r = session_print_text(cli, session, err);
        if (r == 0)
            r = session_print_parts(cli, session, err);
        if (r == 0)
            r = session_dependencies_print(cli, session, err);
        if (r == 0)
            r = session_apps_print(cli, session, err);
        if (r == 0)
            r = session_traffic_print(cli, session, err);
        json_decref(session);
    }
    return r;
}

const struct cli_verb verb_session_info = {
    .name = "session info",
    .args = "SESSION...",
    .summary = "Show everything about a session",
    .details = "SESSION is a name, an id, or the beginning of an id.",
    .examples = "aliquot session info train-3fa2b1\n"
                "aliquot session info 0b5c -o yaml",
    .min_args = 1,
    .max_args = -1,
    .run = session_info,
};

/* ---- rename, restart ---- */

static int session_rename(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r;

    (void)data;
    (void)argc;
    session_path(cli, &path, argv[0], "");
    r = cli_send(cli, METHOD_PATCH, path.data, json_pack("{s:s}", "name", argv[1]),
                 "the new name is not UTF-8", NULL, err);
    return r < 0 ? session_wrap_error(err, argv[0]) : 0;
}

const struct cli_verb verb_session_rename = {
    .name = "session rename",
    .args = "SESSION NAME",
    .summary = "Give a session another name",
    .examples = "aliquot session rename train-3fa2b1 train-best",
    .min_args = 2,
    .max_args = 2,
    .run = session_rename,
};

/* {"resources": {SLOT: AMOUNT, ...}} of words SLOT=AMOUNT; NULL with 'err'. */
static json_t *session_resources_of(int count, char **words, struct aq_error *err)
{
    json_t *resources = json_object();

    for (int i = 0; resources && i < count; i++) {
        const char *sign = strchr(words[i], '=');

        if (!sign || sign == words[i] || !sign[1]
            || json_object_setn_new(resources, words[i], (size_t)(sign - words[i]),
                                    json_string(sign + 1))
                   < 0) {
            (void)aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%s' is not SLOT=AMOUNT", words[i]);
            json_decref(resources);
            return NULL;
        }
    }
    return json_pack("{s:o}", "resources", resources);
}

static int session_resize(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *body = session_resources_of(argc - 1, argv + 1, err);
    int r;

    (void)data;
    if (!body)
        return -EINVAL;
    session_path(cli, &path, argv[0], "");
    r = cli_call(cli, METHOD_PATCH, path.data, body, NULL, err);
    json_decref(body);
    return r < 0 ? session_wrap_error(err, argv[0]) : 0;
}

const struct cli_verb verb_session_resize = {
    .name = "session resize",
    .args = "SESSION SLOT=AMOUNT...",
    .summary = "Give a running session more or less of the GPUs that it has parts of",
    .examples = "aliquot session resize notebook cuda.shares=0.75",
    .min_args = 2,
    .max_args = -1,
    .run = session_resize,
};

static int session_restart(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

        session_old_path(cli, &path, argv[i], "");
        r = cli_call(cli, METHOD_PATCH, path.data, NULL, NULL, err);
        if (r == -ENOENT)
            cli_hint(cli,
                     "what has ended does not start again: see what runs by 'aliquot ps', make "
                     "a new session by 'aliquot run' or 'aliquot session create'");
        if (r < 0)
            r = session_wrap_error(err, argv[i]);
    }
    return r;
}

const struct cli_verb verb_session_restart = {
    .name = "session restart",
    .args = "SESSION...",
    .summary = "Restart a session's programs where they run",
    .examples = "aliquot session restart notebook",
    .min_args = 1,
    .max_args = -1,
    .run = session_restart,
};
