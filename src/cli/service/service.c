/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - model services as the manager shows them: columns, nested members, replicas */
#include "cli/service/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/service/service_figures.h"
#include "cli/service/service_rollout.h"
#include "cli/session/session.h"

const struct cli_things model_services = { SERVICES_PATH "/", NULL };

const struct column service_columns[] = {
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "ready", "READY", COLUMN_TEXT, 0 },
    { "goal", "REVISION", COLUMN_NUMBER, 0 },
    { "image", "IMAGE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "requests", "REQUESTS", COLUMN_NUMBER, 0 },
    { "created_at", "AGE", COLUMN_TIME, 0 },
    { "url", "URL", COLUMN_TEXT, 0 },
    { "urls", "URLS", COLUMN_NAMES, COLUMN_IS_EXTRA },
    { "problem", "PROBLEM", COLUMN_TEXT, COLUMN_IS_WIDE | COLUMN_MAY_SHRINK },
    { "retry_at", "NEXT TRY", COLUMN_CLOCK, COLUMN_IS_EXTRA },
    { "bounds", "REPLICAS", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "share_text", "SHARE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "share_problem", "SHARE PROBLEM", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "scaling_reason", "REASON", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "scaling_problem", "SCALING PROBLEM", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "model", "MODEL", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "runtime", "RUNTIME", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "command", "COMMAND", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "port", "PORT", COLUMN_NUMBER, COLUMN_IS_EXTRA },
    { "health_path", "HEALTH", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "resources", "RESOURCES", COLUMN_SLOTS, COLUMN_IS_WIDE },
    { "in_flight", "IN FLIGHT", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "queued", "QUEUED", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "mean_ms", "MEAN MS", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "recent_text", "LAST MINUTE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "tokens_text", "MODEL TOKENS", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "cold_text", "COLD STARTS", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "public", "PUBLIC", COLUMN_BOOL, COLUMN_IS_EXTRA },
    { "tokens", "TOKENS", COLUMN_NUMBER, COLUMN_IS_EXTRA },
    { "limits_text", "LIMITS", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "rollout_text", "ROLLOUT", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "tag", "TAG", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "owner", "OWNER", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "access_key", "ACCESS-KEY", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "project", "PROJECT", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "domain", "DOMAIN", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "ended_at", "ENDED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "version", "VERSION", COLUMN_NUMBER, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "replicas", "COUNTS", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "share", "SHARES", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "replica_list", "REPLICA-LIST", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "revision", "SPEC", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "limits", "LIMITS-LIST", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "scaling", "SCALING", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "rollout", "ROLLOUT-STATE", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "figures", "FIGURES", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "revision_figures", "REVISION-FIGURES", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    { "token", "TOKEN", COLUMN_TEXT, COLUMN_IS_EXTRA | COLUMN_IS_NESTED },
    COLUMN_END,
};

const struct column service_replica_columns[] = {
    { "number", "REPLICA", COLUMN_NUMBER, COLUMN_IS_NAME },
    { "revision", "REVISION", COLUMN_NUMBER, 0 },
    { "state", "STATE", COLUMN_STATUS, 0 },
    { "in_flight", "IN FLIGHT", COLUMN_NUMBER, 0 },
    { "requests", "REQUESTS", COLUMN_NUMBER, 0 },
    { "failures", "FAILURES", COLUMN_NUMBER, 0 },
    { "ready_at", "READY SINCE", COLUMN_TIME, 0 },
    { "agent", "AGENT", COLUMN_TEXT, 0 },
    { "session_name", "SESSION", COLUMN_TEXT, 0 },
    { "share", "SHARE", COLUMN_NUMBER, 0 },
    { "ratio", "RATIO", COLUMN_NUMBER, 0 },
    { "health_text", "PROBE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

/* ---- members of their own ---- */

static void service_copy_members(json_t *service, const json_t *from, const char *const *members)
{
    for (; *members; members++) {
        json_t *value = json_object_get(from, *members);

        if (value && !json_object_get(service, *members))
            (void)json_object_set(service, *members, value);
    }
}

/* "cap=8 queue=1000 queue-timeout=10m": as options name them. */
static json_t *service_limits_text(const struct output *o, const json_t *limits)
{
    static const struct column kinds[] = {
        { "cap", "cap", COLUMN_NUMBER, 0 },
        { "queue", "queue", COLUMN_NUMBER, 0 },
        { "queue_bytes", "queue-bytes", COLUMN_BYTES, 0 },
        { "queue_timeout", "queue-timeout", COLUMN_SPAN, 0 },
        { "request_timeout", "request-timeout", COLUMN_SPAN, 0 },
        { "drain_timeout", "drain-timeout", COLUMN_SPAN, 0 },
        { "affinity", "affinity", COLUMN_TEXT, 0 },
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < AQ_COUNT(kinds); i++) {
        const json_t *value = json_object_get(limits, kinds[i].key);

        if (!value || json_is_null(value))
            continue;
        strbuf_addf(&text, "%s%s=", text.len ? " " : "", kinds[i].title);
        cell_write(o, &kinds[i], value, &text);
    }
    return text.len ? json_string(text.data) : json_null();
}

/* The state of a replica in a word: that of its traffic, else of its session. */
static const char *service_replica_state(const json_t *replica)
{
    const char *health = output_text(replica, "health"), *status = output_text(replica, "status");

    if (json_is_true(json_object_get(replica, "draining")))
        return "draining";
    return strcmp(health, "starting") == 0 && strcmp(status, "RUNNING") != 0 && *status ? status
                                                                                        : health;
}

/* "0.5 of 0.25-1", and which replica has less because there is no room. */
static void service_adapt_share(json_t *service)
{
    const json_t *share = json_object_get(service, "share"), *replica;
    double least = json_number_value(json_object_get(share, "min"));
    double wanted = json_number_value(json_object_get(share, "wanted"));
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    size_t i;

    if (!json_is_object(share))
        return;
    strbuf_addf(&text, "%g", wanted);
    if (least > 0)
        strbuf_addf(&text, " of %g-%g", least, json_number_value(json_object_get(share, "max")));
    (void)json_object_set_new(service, "share_text", json_string(text.data));
    json_array_foreach(json_object_get(service, "replica_list"), i, replica)
        if (*output_text(replica, "share_problem")) {
            strbuf_clear(&text);
            strbuf_addf(&text, "replica %lld keeps %g: %s",
                        (long long)json_integer_value(json_object_get(replica, "number")),
                        json_number_value(json_object_get(replica, "share")),
                        output_text(replica, "share_problem"));
            (void)json_object_set_new(service, "share_problem", json_string(text.data));
            return;
        }
}

void service_adapt(json_t *service)
{
    static const char *const of_revision[] = { "image", "runtime",   "command",
                                               "port",  "resources", NULL };
    static const char *const of_figures[] = { "requests", "in_flight", "queued", "mean_ms", NULL };
    const json_t *counts = json_object_get(service, "replicas");
    const json_t *spec = json_object_get(service, "revision");
    const json_t *health = json_object_get(spec, "health");
    json_int_t wanted = json_integer_value(json_object_get(counts, "wanted"));
    json_int_t least = json_integer_value(json_object_get(counts, "min"));
    json_int_t most = json_integer_value(json_object_get(counts, "max"));
    json_t *replica;
    char text[64];
    size_t i;

    service_copy_members(service, spec, of_revision);
    service_copy_members(service, json_object_get(service, "figures"), of_figures);
    (void)json_object_set(service, "model", json_object_get(spec, "model_name"));
    (void)json_object_set(service, "goal", json_object_get(spec, "number"));
    if (json_object_get(health, "path"))
        (void)json_object_set(service, "health_path", json_object_get(health, "path"));
    (void)snprintf(text, sizeof(text), "%lld/%lld",
                   (long long)json_integer_value(json_object_get(counts, "ready")),
                   (long long)wanted);
    (void)json_object_set_new(service, "ready", json_string(text));
    (void)snprintf(text, sizeof(text), least == most ? "%lld" : "%lld of %lld-%lld",
                   (long long)wanted, (long long)least, (long long)most);
    (void)json_object_set_new(service, "bounds", json_string(text));
    service_adapt_share(service);
    json_array_foreach(json_object_get(service, "replica_list"), i, replica)
        (void)json_object_set_new(replica, "state", json_string(service_replica_state(replica)));
}

int service_get(struct cli *cli, const char *name, json_t **ret, struct aq_error *err)
{
    return cli_thing_call(cli, METHOD_GET, &model_services, name, "", NULL, ret, err);
}

int service_print(struct cli *cli, json_t *service, struct aq_error *err)
{
    service_adapt(service);
    service_figures_add_texts(service);
    (void)json_object_set_new(
        service, "limits_text",
        service_limits_text(&cli->output, json_object_get(service, "limits")));
    (void)json_object_set_new(service, "rollout_text", service_rollout_text(&cli->output, service));
    return record_print(cli, service_columns, service, err);
}

int service_print_line(struct cli *cli, json_t *service, struct aq_error *err)
{
    json_auto_t *rows = NULL;

    if (!output_is_human(&cli->output))
        return service_print(cli, service, err);
    service_adapt(service);
    rows = json_pack("[O]", service);
    return list_print(cli, service_columns, rows, err);
}

/* ---- bodies ---- */

void service_nest(json_t *body)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(body, next, key, value)
    {
        const char *dot = strchr(key, '.');
        AQ_CLEANUP(aq_freep) char *outer = dot ? aq_strndup(key, (size_t)(dot - key)) : NULL;
        json_t *object;

        if (!dot)
            continue;
        object = json_object_get(body, outer);
        if (!json_is_object(object)) {
            object = json_object();
            (void)json_object_set_new(body, outer, object);
        }
        (void)json_object_set(object, dot + 1, value);
        (void)json_object_del(body, key);
    }
}

json_t *service_parse_replicas(const char *text)
{
    size_t least = strspn(text, "0123456789");
    size_t most = text[least] == '-' ? strspn(text + least + 1, "0123456789") : 0;

    if (least == 0 || least > 6 || most > 6)
        return NULL;
    if (!text[least])
        return json_integer(strtoll(text, NULL, 10));
    return most && !text[least + 1 + most] ? json_string(text) : NULL;
}

/* ---- replicas ---- */

static bool service_is_replica(const json_t *row, const char *replica)
{
    char number[24];

    (void)snprintf(number, sizeof(number), "%lld",
                   (long long)json_integer_value(json_object_get(row, "number")));
    return strcmp(number, replica) == 0 || strcmp(output_text(row, "session"), replica) == 0
           || strcmp(output_text(row, "session_name"), replica) == 0;
}

int service_find_replica(const json_t *service, const char *replica, const json_t **ret,
                         struct aq_error *err)
{
    const json_t *rows = json_object_get(service, "replica_list"), *row, *found = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf numbers = STRBUF_INIT;
    json_int_t newest = -1, number;
    size_t i;

    json_array_foreach(rows, i, row) {
        number = json_integer_value(json_object_get(row, "number"));
        strbuf_addf(&numbers, "%s%lld", i ? ", " : "", (long long)number);
        if (replica ? service_is_replica(row, replica) : number > newest) {
            found = row;
            newest = number;
        }
    }
    if (!found && (!replica || !numbers.len))
        return aq_fail(err, ENOENT, "service '%s' has no replica now%s%.200s",
                       output_text(service, "name"), *output_text(service, "problem") ? ": " : "",
                       output_text(service, "problem"));
    if (!found)
        return aq_fail(err, ENOENT, "service '%s' has no replica '%.40s'; it has %.100s",
                       output_text(service, "name"), replica, numbers.data);
    *ret = found;
    return 0;
}

/* Sessions of replicas are called SERVICE.rREVISION.NUMBER. */
int service_find_session(struct cli *cli, const json_t *service, const char *number,
                         char id[SERVICE_SESSION_MAX], struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT, filter = STRBUF_INIT;
    const char *name = output_text(service, "name");
    json_auto_t *answer = NULL;
    const json_t *session;
    int r;

    strbuf_addf(&filter, "name ilike \"%s.r%%.%s\"", name, number ? number : "%");
    session_list_path(cli, &path, NULL, true, false);
    cli_path_query(&path, "fields", "id,name");
    cli_path_query(&path, "filter", filter.data);
    cli_path_query(&path, "order", "-created_at");
    cli_path_query(&path, "limit", "1");
    if ((r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err)) < 0)
        return r;
    session = json_array_get(json_object_get(answer, "items"), 0);
    if (!session)
        return aq_fail(err, ENOENT, "no replica of service '%s' is on record", name);
    (void)snprintf(id, SERVICE_SESSION_MAX, "%s", output_text(session, "id"));
    return 0;
}
