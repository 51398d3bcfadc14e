/* SPDX-License-Identifier: Apache-2.0 */
/* What the manager answers when it refuses: problem documents into errors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "http/problem.h"

static int client_error_code(int status, const char *slug)
{
    if (slug && strstr(slug, "already-exists"))
        return EEXIST;
    switch (status) {
    case 401:
    case 403:
        return EACCES;
    case 404:
        return ENOENT;
    case 409:
        return EEXIST;
    case 412:
        return EDQUOT;
    case 429:
        return EBUSY;
    case 502:
    case 503:
        return EAGAIN;
    case 504:
        return ETIMEDOUT;
    default:
        return status >= 400 && status < 500 ? EINVAL : EIO;
    }
}

/* Members of requests whose options are called otherwise. */
static const struct {
    const char *field, *option;
} client_error_options[] = {
    { "agent_list", "agent" },
    { "batch_timeout", "timeout" },
    { "clusterMode", "cluster-mode" },
    { "clusterSize", "cluster" },
    { "clusterSizeMin", "cluster" },
    { "dependencies", "after" },
    { "environ", "env" },
    { "mounts", "mount" },
    { "owner_access_key", "owner" },
    { "preopen_ports", "port" },
    { "resource_opts.shmem", "shmem" },
    { "rollout.abort.error_ratio", "abort-errors" },
    { "rollout.abort.failures", "abort-failures" },
    { "rollout.abort.latency_ratio", "abort-latency" },
    { "rollout.abort.stalled", "abort-stalled" },
    { "rollout.max_surge", "max-surge" },
    { "rollout.max_unavailable", "max-unavailable" },
    { "rollout.promote_delay", "promote-after" },
    { "rollout.steps", "steps" },
    { "scalingGroup", "resource-group" },
    { "scaling_group", "resource-group" },
};

/* The option that a member of the request was made from, with 'verb'; NULL if there is none. */
static const struct cli_opt *client_error_find_option(const struct cli_verb *verb,
                                                      const char *field)
{
    const struct cli_opt *opt;
    char name[40];
    size_t len;

    for (opt = verb->opts; opt && opt->name; opt++)
        if (opt->member && strcmp(opt->member, field) == 0)
            return opt;
    /* An option with a list is named as a whole: "--steps" of "rollout.steps[1]". */
    (void)snprintf(name, sizeof(name), "%.*s",
                   (int)(strncmp(field, "rollout.", 8) == 0 ? strcspn(field, "[") : strlen(field)),
                   field);
    for (size_t i = 0; i < AQ_COUNT(client_error_options); i++)
        if (strcmp(client_error_options[i].field, name) == 0) {
            (void)snprintf(name, sizeof(name), "%s", client_error_options[i].option);
            break;
        }
    for (char *c = name; (c = strchr(c, '_'));)
        *c = '-';
    len = strlen(name);
    opt = cli_opt_find(verb->opts, name, len);
    return opt ? opt : cli_opt_find(cli_global_opts, name, len);
}

/* "cpu" of "config.resources.cpu" with "resources.", also of "[0].config.resources.cpu" and
 * "roles.worker.resources.cpu"; NULL = it is of another.
 */
static const char *client_error_find_member(const char *field, const char *of)
{
    const char *found = strstr(field, of);

    return found ? found + strlen(of) : NULL;
}

static const char *client_error_find_slot(const char *field)
{
    return client_error_find_member(field, "resources.");
}

static const char *client_error_find_way(const char *field)
{
    return client_error_find_member(field, "config.resource_opts.");
}

/* "--role worker: cpu" of "roles.worker.resources.cpu", "--role" of all else on roles. */
static void client_error_name_role(const char *field, const char *slot, struct strbuf *out)
{
    const char *role = field + strlen("roles.");

    if (slot)
        strbuf_addf(out, "--role %.*s: %s", (int)strcspn(role, "."), role, slot);
    else
        strbuf_adds(out, "--role");
}

/* "-r cpu" of "config.resources.cpu": as it was typed, also of the first of several. */
static void client_error_name_field(const struct cli_verb *verb, const char *field,
                                    struct strbuf *out)
{
    const char *item = field[0] == '[' && strstr(field, "].") ? strstr(field, "].") + 2 : field;
    const char *name = strncmp(item, "config.", 7) == 0 ? item + 7 : item;
    const char *slot = client_error_find_slot(field), *way = client_error_find_way(field);
    const struct cli_opt *opt = verb ? client_error_find_option(verb, name) : NULL;

    if (strncmp(name, "roles", 5) == 0 && verb && cli_opt_find(verb->opts, "role", 4))
        client_error_name_role(name, slot, out);
    else if (slot && verb && cli_opt_find(verb->opts, "resource", 8))
        strbuf_addf(out, "-r %s", slot);
    else if (way && verb && cli_opt_find(verb->opts, "resource-opts", 13))
        strbuf_addf(out, "--resource-opts %s", way);
    else if (opt)
        strbuf_addf(out, "--%s", opt->name);
    else
        strbuf_adds(out, field);
}

/* "-r cpu: is too much" of {"config.resources.cpu": "cpu: is too much"}, "--steps: ..." of
 * {"rollout.steps": "rollout.steps: ..."}
 */
static void client_error_describe_field(const struct cli_verb *verb, const char *field,
                                        const char *text, struct strbuf *out)
{
    const char *slot = client_error_find_slot(field), *way = client_error_find_way(field);
    const char *said = slot ? slot : way ? way : field; /* by the text, too */
    size_t len = strlen(said);

    client_error_name_field(verb, field, out);
    if (len && strncmp(text, said, len) == 0 && strncmp(text + len, ": ", 2) == 0)
        text += len + 2;
    strbuf_addf(out, ": %s", text);
}

/* "name: is required; mem: ..." of {"name": "is required"}. */
static void client_error_describe_fields(const struct cli_verb *verb, const json_t *data,
                                         struct strbuf *out)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)data, key, value) {
        if (!json_is_string(value))
            continue;
        strbuf_adds(out, out->len ? "; " : "");
        client_error_describe_field(verb, key, json_string_value(value), out);
    }
}

/* Does the title add nothing to the message? */
static bool client_error_is_said(const char *slug)
{
    static const char *const slugs[] = { "conflict",
                                         "generic-bad-request",
                                         "generic-forbidden",
                                         "object-not-found",
                                         "reservation-does-not-fit",
                                         "server-frozen",
                                         "session-already-exists",
                                         "too-many-sessions-matched",
                                         "vfolder-operation-failed" };

    for (size_t i = 0; i < AQ_COUNT(slugs); i++)
        if (strcmp(slugs[i], slug) == 0)
            return true;
    return false;
}

/* What the error is about: the first field that it has, or "session" of "No such session.", as
 * an option if it is one.
 */
static void client_error_set_field(const struct cli_verb *verb, const json_t *data,
                                   const char *title, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf field = STRBUF_INIT;
    const char *at = title && strncmp(title, "No such ", 8) == 0 ? title + 8 : "";
    char member[40];

    at = at[0] == '[' && strstr(at, "].") ? strstr(at, "].") + 2 : at;
    (void)snprintf(member, sizeof(member), "%.*s", (int)strcspn(at, " ."), at);
    if (json_object_size(data))
        client_error_name_field(verb, json_object_iter_key(json_object_iter((json_t *)data)),
                                &field);
    else if (verb && member[0] && client_error_find_option(verb, member))
        client_error_name_field(verb, member, &field);
    else
        strbuf_add(&field, at, strcspn(at, "."));
    (void)snprintf(err->field, sizeof(err->field), "%s", field.data);
}

int cli_fail_status(const struct cli *cli, int status, const char *body, size_t len,
                    struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf fields = STRBUF_INIT;
    json_t *problem = json_loadb(body, len, 0, NULL);
    const char *type = json_string_value(json_object_get(problem, "type"));
    const char *slug = type ? strrchr(type, '/') : NULL;
    const char *title = json_string_value(json_object_get(problem, "title"));
    const char *msg = json_string_value(json_object_get(problem, "msg"));
    const struct problem_type *known = slug ? problem_find(slug + 1) : NULL;
    const json_t *data = json_object_get(problem, "data");
    bool is_role = title && strcmp(title, PROBLEM_TITLE_ROLE) == 0;
    int code = client_error_code(status, slug);

    if (known && strcmp(known->slug, "invalid-api-params") == 0)
        client_error_describe_fields(cli->verb, data, &fields);
    if (fields.len)
        aq_fail(err, code, "%s", fields.data);
    else if (msg && known && (is_role || client_error_is_said(known->slug)))
        aq_fail(err, code, "%s", msg);
    else if (title && msg)
        aq_fail(err, code, "%s (%s)", msg, title);
    else if (title || msg)
        aq_fail(err, code, "%s", title ? title : msg);
    else
        aq_fail(err, code, "the manager answered with status %d %s", status, status_text(status));
    if (err) {
        err->kind = known ? known->slug : NULL;
        client_error_set_field(cli->verb, fields.len ? data : NULL, title, err);
        if (is_role)
            (void)snprintf(err->field, sizeof(err->field), "%s", PROBLEM_FIELD_ROLE);
    }
    json_decref(problem);
    return -code;
}
