/* SPDX-License-Identifier: Apache-2.0 */
/* model_service.c - model services: bounds, copies, and the JSON of their rows */
#include "model/model_service.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "model/cluster_role.h"
#include "model/slot.h"
#include "model/wire_copy.h"

#define SPEC_BYTES_MAX (256u << 10) /* of its JSON */
#define RESOURCES_MAX 64
#define SLOT_TEXT_MAX 64
#define PATH_BYTES_MAX 1024
#define TAG_BYTES_MAX 64
#define NOTE_BYTES_MAX 1024
#define OBJECT_BYTES_MAX (16u << 10) /* of scaling, rollout */
#define TOKEN_PATHS_MAX 32
#define TOKEN_PATH_BYTES_MAX 256
#define PROBE_USEC_MIN (USEC_PER_SEC / 10)
#define HOUR (INT64_C(3600) * USEC_PER_SEC)
#define DAY (24 * HOUR)
#define AFFINITY_HEADER "header:"

/* ---- the spec of a revision ---- */

#define AT(member) offsetof(struct model_service_spec, member)
#define HEALTH "health"
static const struct wire_field model_service_spec_fields[] = {
    { "resources", WIRE_PAIRS, AT(resources), 0, NULL, "resources", RESOURCES_MAX },
    { "cluster_size", WIRE_NUMBER, AT(cluster_size) },
    { "multi_node", WIRE_FLAG, AT(is_multi_node) },
    { "priority", WIRE_NUMBER, AT(priority) },
    { "runtime", WIRE_TEXT, AT(runtime), 0, NULL, "runtime", 32 },
    { "model", WIRE_TEXT, AT(model), 0, NULL, "model", UUID_TEXT_MAX },
    { "model_name", WIRE_TEXT, AT(model_name), 0, NULL, "model", 256 },
    { "model_target", WIRE_TEXT, AT(model_target), 0, NULL, "model_target", PATH_BYTES_MAX },
    { "definition", WIRE_TEXT, AT(definition_path), 0, NULL, "definition", PATH_BYTES_MAX },
    { "folders", WIRE_TEXTS, AT(mounts), 0, NULL, "mounts", FOLDER_MOUNTS_MAX - 1 },
    { "port", WIRE_NUMBER, AT(port) },
    { "path", WIRE_TEXT, AT(health_path), 0, HEALTH, "health.path", PATH_BYTES_MAX },
    { "status", WIRE_NUMBER, AT(health_status), 0, HEALTH },
    { "interval_usec", WIRE_NUMBER, AT(health_interval_usec), 0, HEALTH },
    { "timeout_usec", WIRE_NUMBER, AT(health_timeout_usec), 0, HEALTH },
    { "retries", WIRE_NUMBER, AT(health_retries), 0, HEALTH },
    { "ready_usec", WIRE_NUMBER, AT(ready_usec) },
    { "given", WIRE_TEXT, AT(given), 0, NULL, "given", SPEC_BYTES_MAX / 2 },
    { NULL, WIRE_BESIDE, AT(session), .of = &session_spec_shape },
    WIRE_FIELDS_END,
};
#undef AT

const struct wire_shape model_service_spec_shape = { .fields = model_service_spec_fields };

static int service_check_text(const char *text, const char *field, size_t max, struct aq_error *err)
{
    if (!text)
        return 0;
    if (strlen(text) > max)
        return aq_fail_field(err, EINVAL, field, "%s is longer than %zu bytes", field, max);
    if (!utf8_is_valid(text, strlen(text)))
        return aq_fail_field(err, EINVAL, field, "%s is not UTF-8", field);
    return 0;
}

static int service_check_number(int64_t number, const char *field, int64_t min, int64_t max,
                                struct aq_error *err)
{
    if (number == 0 || (number >= min && number <= max))
        return 0;
    return aq_fail_field(err, EINVAL, field, "%s must be from %lld to %lld, not %lld", field,
                         (long long)min, (long long)max, (long long)number);
}

/* A duration; the error names it in seconds. */
static int service_check_usec(int64_t usec, const char *field, int64_t min, int64_t max,
                              struct aq_error *err)
{
    if (usec == 0 || (usec >= min && usec <= max))
        return 0;
    return aq_fail_field(err, EINVAL, field, "%s must be from %g to %g seconds, not %g", field,
                         (double)min / USEC_PER_SEC, (double)max / USEC_PER_SEC,
                         (double)usec / USEC_PER_SEC);
}

static int service_check_texts(const struct model_service_spec *spec, struct aq_error *err)
{
    int r = 0;

    for (const struct wire_field *field = model_service_spec_fields;
         r == 0 && field->kind != WIRE_END; field++)
        if (field->kind == WIRE_TEXT)
            r = service_check_text(*wire_place(spec, field).text, field->name, field->max, err);
    for (const char *c = spec->runtime; r == 0 && c && *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", *c))
            r = aq_fail_field(err, EINVAL, "runtime",
                              "a runtime's name has small letters, digits and '-', unlike '%s'",
                              spec->runtime);
    return r;
}

static int service_check_model(const struct model_service_spec *spec, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const char *clean = NULL;
    struct uuid id;

    if (spec->model && uuid_parse(spec->model, &id) < 0)
        return aq_fail_field(err, EINVAL, "model", "'%.64s' is not the id of a folder",
                             spec->model);
    if (spec->model_target
        && (spec->model_target[0] != '/'
            || folder_mount_target(spec->model_target, &arena, &clean, NULL) < 0
            || strcmp(clean, spec->model_target) != 0 || folder_mount_is_reserved(clean)))
        return aq_fail_field(err, EINVAL, "model_target",
                             "'%.200s' cannot hold the model; give an absolute path without '..' "
                             "that the container does not need for itself, such as /models",
                             spec->model_target);
    for (size_t i = 0; i < spec->mounts.count; i++)
        if (!spec->mounts.items[i][0] || strlen(spec->mounts.items[i]) > PATH_BYTES_MAX
            || !utf8_is_valid(spec->mounts.items[i], strlen(spec->mounts.items[i])))
            return aq_fail_field(err, EINVAL, "mounts",
                                 "a mount is FOLDER[:TARGET[:ro]] of at most %d bytes of UTF-8",
                                 PATH_BYTES_MAX);
    return spec->mounts.count < FOLDER_MOUNTS_MAX
               ? 0
               : aq_fail_field(err, EINVAL, "mounts", "mounts has more than %d elements",
                               FOLDER_MOUNTS_MAX - 1);
}

static int service_check_health(const struct model_service_spec *spec, struct aq_error *err)
{
    int r = spec->port >= 1 && spec->port <= UINT16_MAX
                ? 0
                : aq_fail_field(
                    err, EINVAL, "port",
                    "port must be from 1 to %d, not %lld: it is where the replica takes "
                    "requests",
                    UINT16_MAX, (long long)spec->port);

    if (r == 0 && spec->health_path && spec->health_path[0] != '/')
        r = aq_fail_field(err, EINVAL, "health.path", "'%.200s' does not begin with '/'",
                          spec->health_path);
    for (const char *c = spec->health_path; r == 0 && c && *c; c++)
        if (*c <= ' ' || *c > '~' || *c == '#')
            r = aq_fail_field(err, EINVAL, "health.path",
                              "health.path must be printable ASCII without spaces and '#'");
    if (r == 0)
        r = service_check_number(spec->health_status, "health.status", 100, 599, err);
    if (r == 0)
        r = service_check_usec(spec->health_interval_usec, "health.interval", PROBE_USEC_MIN, HOUR,
                               err);
    if (r == 0)
        r = service_check_usec(spec->health_timeout_usec, "health.timeout", PROBE_USEC_MIN, HOUR,
                               err);
    if (r == 0)
        r = service_check_number(spec->health_retries, "health.retries", 1, 1000, err);
    return r < 0
               ? r
               : service_check_usec(spec->ready_usec, "ready_timeout", USEC_PER_SEC, 7 * DAY, err);
}

static int service_check_resources(const struct model_service_spec *spec, struct aq_error *err)
{
    int64_t amount;
    int r = 0;

    if (spec->resources.count > RESOURCES_MAX)
        return aq_fail_field(err, EINVAL, "resources", "resources has more than %d members",
                             RESOURCES_MAX);
    for (size_t i = 0; r == 0 && i < spec->resources.count; i++) {
        const struct text_pair *slot = &spec->resources.items[i];

        if (!slot->key[0] || strlen(slot->key) > SLOT_TEXT_MAX
            || strlen(slot->value) > SLOT_TEXT_MAX)
            return aq_fail_field(err, EINVAL, "resources",
                                 "a slot and its amount have 1 to %d bytes", SLOT_TEXT_MAX);
        r = slot_amount_parse(slot->value, strlen(slot->value), slot_type_guess(slot->key), false,
                              slot->key, &amount, err);
        if (r < 0 && err)
            memcpy(err->field, "resources", sizeof("resources"));
    }
    return r < 0 ? -EINVAL : 0;
}

int model_service_spec_check(const struct model_service_spec *spec, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    int r = session_spec_check(&spec->session, err);

    if (r == 0 && session_spec_uses_host_network(&spec->session))
        r = aq_fail_field(err, EINVAL, "network",
                          "replicas have a private network, so that two of them can use one port "
                          "of a node; leave the network out");
    if (r == 0)
        r = service_check_texts(spec, err);
    if (r == 0)
        r = service_check_model(spec, err);
    if (r == 0)
        r = service_check_health(spec, err);
    if (r == 0)
        r = service_check_resources(spec, err);
    if (r == 0)
        r = service_check_number(spec->cluster_size, "cluster_size", 1, CLUSTER_SIZE_MAX, err);
    if (r == 0)
        r = service_check_number(spec->priority, "priority", 0, 100, err);
    if (r < 0)
        return r;
    model_service_spec_write(spec, &w);
    return text.len <= SPEC_BYTES_MAX
               ? 0
               : aq_fail_field(err, EINVAL, "command",
                               "command, environ, bootstrap and the other texts together are "
                               "longer than %u bytes",
                               SPEC_BYTES_MAX);
}

void model_service_spec_write(const struct model_service_spec *spec, struct jsonw *w)
{
    jsonw_object_begin(w);
    (void)wire_fields_write(model_service_spec_fields, spec, 0, w, NULL); /* it was checked */
    jsonw_object_end(w);
}

int model_service_spec_parse(const char *text, struct arena *arena, struct model_service_spec *ret,
                             struct aq_error *err)
{
    json_auto_t *object = json_load_string(text, JSON_REJECT_DUPLICATES);

    *ret = (struct model_service_spec){ .port = 0 };
    if (!json_is_object(object))
        return aq_fail_field(err, EINVAL, "spec",
                             "the spec of a model service must be a JSON object");
    return wire_fields_read(model_service_spec_fields, object, 0, arena, ret, err);
}

struct model_service_spec *model_service_spec_copy(const struct model_service_spec *spec)
{
    return wire_copy(model_service_spec_fields, spec, sizeof(*spec));
}

/* ---- limits ---- */

#define AT(member) offsetof(struct model_service_limits, member)
static const struct wire_field service_limit_fields[] = {
    { "cap", WIRE_NUMBER, AT(cap) },
    { "queue", WIRE_NUMBER, AT(queue_max) },
    { "queue_bytes", WIRE_NUMBER, AT(queue_bytes) },
    { "queue_usec", WIRE_NUMBER, AT(queue_usec) },
    { "request_usec", WIRE_NUMBER, AT(request_usec) },
    { "drain_usec", WIRE_NUMBER, AT(drain_usec) },
    { "affinity", WIRE_TEXT, AT(affinity) },
    WIRE_FIELDS_END,
};
#undef AT

void model_service_limits_write(const struct model_service_limits *limits, struct jsonw *w)
{
    jsonw_object_begin(w);
    (void)wire_fields_write(service_limit_fields, limits, 0, w, NULL); /* no JSON within */
    jsonw_object_end(w);
}

int model_service_limits_parse(const char *text, struct model_service_limits *ret,
                               struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    json_auto_t *object = json_load_string(text, JSON_REJECT_DUPLICATES);
    int r;

    *ret = (struct model_service_limits){ .cap = 0 };
    if (!json_is_object(object))
        return aq_fail_field(err, EINVAL, "limits",
                             "the limits of a model service must be a JSON object");
    r = wire_fields_read(service_limit_fields, object, 0, &arena, ret, err);
    ret->affinity = r < 0 ? NULL : aq_strdup(ret->affinity);
    return r;
}

static bool service_is_affinity(const char *text)
{
    size_t header = strlen(AFFINITY_HEADER), len;

    if (!text || strcmp(text, "prompt") == 0)
        return true;
    if (strncmp(text, AFFINITY_HEADER, header) != 0)
        return false;
    len = strspn(text + header, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return len >= 1 && len <= 64 && !text[header + len];
}

static int service_check_limits(const struct model_service_limits *limits, struct aq_error *err)
{
    int r = service_check_number(limits->cap, "limits.cap", 1, 1000000, err);

    if (r == 0)
        r = service_check_number(limits->queue_max, "limits.queue", 1, 1000000, err);
    if (r == 0)
        r = service_check_number(limits->queue_bytes, "limits.queue_bytes", 1, INT64_C(16) << 30,
                                 err);
    if (r == 0)
        r = service_check_usec(limits->queue_usec, "limits.queue_timeout", USEC_PER_MSEC, DAY, err);
    if (r == 0)
        r = service_check_usec(limits->request_usec, "limits.request_timeout", USEC_PER_MSEC, DAY,
                               err);
    if (r == 0)
        r = service_check_usec(limits->drain_usec, "limits.drain_timeout", USEC_PER_MSEC, 7 * DAY,
                               err);
    if (r == 0 && !service_is_affinity(limits->affinity))
        r = aq_fail_field(err, EINVAL, "limits.affinity",
                          "expected prompt or header:NAME, got '%.100s'", limits->affinity);
    return r;
}

/* ---- tokens ---- */

void model_service_token_write_paths(const struct model_service_token *token, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (size_t i = 0; i < token->paths.count; i++)
        jsonw_str(w, token->paths.items[i]);
    jsonw_array_end(w);
}

static void service_free_paths(struct model_service_token *token)
{
    for (size_t i = 0; i < token->paths.count; i++)
        free((char *)(uintptr_t)token->paths.items[i]);
    free(token->paths.items);
    token->paths = (struct str_list){ .count = 0 };
}

int model_service_token_parse_paths(const char *text, struct model_service_token *token,
                                    struct aq_error *err)
{
    json_auto_t *list = json_load_string(text, JSON_REJECT_DUPLICATES);
    size_t count = json_array_size(list);

    service_free_paths(token);
    if (!json_is_array(list))
        return aq_fail_field(err, EINVAL, "paths", "the paths of a token must be a JSON list");
    if (count)
        token->paths.items = aq_alloc_array(count, sizeof(*token->paths.items));
    for (size_t i = 0; i < count; i++) {
        const char *path = json_string_value(json_array_get(list, i));

        if (!path)
            return aq_fail_field(err, EINVAL, "paths", "a path of a token must be text");
        token->paths.items[token->paths.count++] = aq_strdup(path);
    }
    return 0;
}

int model_service_token_check(const struct model_service_token *token, int64_t now_usec,
                              struct aq_error *err)
{
    int r = service_check_text(token->label, "label", TAG_BYTES_MAX, err);

    if (strspn(token->hash, "0123456789abcdef") != MODEL_SERVICE_TOKEN_HASH)
        return aq_fail_field(err, EINVAL, "hash", "a token's hash has %d hexadecimal digits",
                             MODEL_SERVICE_TOKEN_HASH);
    if (r == 0 && token->paths.count > TOKEN_PATHS_MAX)
        r = aq_fail_field(err, EINVAL, "paths", "paths has more than %d elements", TOKEN_PATHS_MAX);
    for (size_t i = 0; r == 0 && i < token->paths.count; i++)
        if (token->paths.items[i][0] != '/')
            r = aq_fail_field(err, EINVAL, "paths", "'%.100s' does not begin with '/'",
                              token->paths.items[i]);
        else
            r = service_check_text(token->paths.items[i], "paths", TOKEN_PATH_BYTES_MAX, err);
    if (r == 0 && token->expires_usec && token->expires_usec <= now_usec)
        r = aq_fail_field(err, EINVAL, "expires_at",
                          "the token would have expired already; give a time in the future");
    if (r == 0)
        r = service_check_number(token->rate_milli, "rate", 1, INT64_C(1000000000), err);
    return r < 0 ? r : service_check_number(token->budget, "budget", 1, INT64_MAX, err);
}

void model_service_token_done(struct model_service_token *token)
{
    service_free_paths(token);
    free(token->label);
    *token = (struct model_service_token){ .hash = "" };
}

void model_service_token_copy(struct model_service_token *ret,
                              const struct model_service_token *token)
{
    *ret = *token;
    ret->label = aq_strdup(token->label);
    ret->paths = (struct str_list){ .count = token->paths.count };
    if (token->paths.count)
        ret->paths.items = aq_alloc_array(token->paths.count, sizeof(*ret->paths.items));
    for (size_t i = 0; i < token->paths.count; i++)
        ret->paths.items[i] = aq_strdup(token->paths.items[i]);
}

/* ---- the whole ---- */

int model_service_check_name(const char *name, struct aq_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t len = strlen(name), i = 0;

    while (i < len && (strchr(letters, name[i]) || name[i] == '-'))
        i++;
    if (len >= MODEL_SERVICE_NAME_MIN && len <= MODEL_SERVICE_NAME_MAX && i == len && name[0] != '-'
        && name[len - 1] != '-')
        return 0;
    return aq_fail_field(err, EINVAL, "name",
                         "'%.64s' is not a service's name: %d to %d ASCII letters, digits, '_' and "
                         "'-', the first and the last one not '-'",
                         name, MODEL_SERVICE_NAME_MIN, MODEL_SERVICE_NAME_MAX);
}

static int service_check_object(const char *text, const char *field, struct aq_error *err)
{
    json_auto_t *object = json_load_string(text, JSON_REJECT_DUPLICATES);

    if (!text || (json_is_object(object) && strlen(text) <= OBJECT_BYTES_MAX))
        return 0;
    return aq_fail_field(err, EINVAL, field, "%s must be a JSON object of at most %u bytes", field,
                         OBJECT_BYTES_MAX);
}

int model_service_check(const struct model_service *s, struct aq_error *err)
{
    const struct model_service_revision *last = s->revision_count
                                                    ? &s->revisions[s->revision_count - 1]
                                                    : NULL;
    int r = 0;

    if (s->replicas_min < 0 || s->replicas_max < s->replicas_min
        || s->replicas_max > MODEL_SERVICE_REPLICAS_MAX || s->replicas < s->replicas_min
        || s->replicas > s->replicas_max)
        return aq_fail_field(err, EINVAL, "replicas",
                             "a service has from 0 to %d replicas, as a number or as bounds such "
                             "as 0-8",
                             MODEL_SERVICE_REPLICAS_MAX);
    if ((last || s->goal) && !model_service_find_revision(s, s->goal))
        return aq_fail_field(err, ENOENT, "revision", "the service has no revision %lld",
                             (long long)s->goal);
    r = service_check_text(s->tag, "tag", TAG_BYTES_MAX, err);
    if (r == 0 && last)
        r = service_check_text(last->note, "note", NOTE_BYTES_MAX, err);
    if (r == 0)
        r = service_check_limits(&s->limits, err);
    if (r == 0)
        r = service_check_object(s->scaling, "scaling", err);
    if (r == 0)
        r = service_check_object(s->rollout, "rollout", err);
    return r < 0 || !last ? r : model_service_spec_check(last->spec, err);
}

void model_service_done(struct model_service *s)
{
    free(s->domain);
    free(s->resource_group);
    free(s->tag);
    free(s->limits.affinity);
    free(s->scaling);
    free(s->fired);
    free(s->rollout);
    for (size_t i = 0; i < s->revision_count; i++) {
        free(s->revisions[i].spec);
        free(s->revisions[i].note);
    }
    free(s->revisions);
    for (size_t i = 0; i < s->token_count; i++)
        model_service_token_done(&s->tokens[i]);
    free(s->tokens);
    *s = (struct model_service){ .name = "" };
}

void model_service_copy(struct model_service *ret, const struct model_service *s)
{
    *ret = *s;
    ret->domain = aq_strdup(s->domain);
    ret->resource_group = aq_strdup(s->resource_group);
    ret->tag = aq_strdup(s->tag);
    ret->limits.affinity = aq_strdup(s->limits.affinity);
    ret->scaling = aq_strdup(s->scaling);
    ret->fired = aq_strdup(s->fired);
    ret->rollout = aq_strdup(s->rollout);
    ret->revisions = aq_alloc_array(s->revision_count + 1, sizeof(*ret->revisions));
    for (size_t i = 0; i < s->revision_count; i++) {
        ret->revisions[i] = s->revisions[i];
        ret->revisions[i].spec = model_service_spec_copy(s->revisions[i].spec);
        ret->revisions[i].note = aq_strdup(s->revisions[i].note);
    }
    ret->tokens = s->token_count ? aq_alloc_array(s->token_count, sizeof(*ret->tokens)) : NULL;
    for (size_t i = 0; i < s->token_count; i++)
        model_service_token_copy(&ret->tokens[i], &s->tokens[i]);
}

/* All that a row has, as text. */
static void service_write_all(const struct model_service *s, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    char id[UUID_TEXT_MAX];

    jsonw_array_begin(&w);
    jsonw_str(&w, s->name);
    jsonw_str(&w, s->access_key);
    jsonw_str(&w, s->domain);
    jsonw_str(&w, s->resource_group);
    jsonw_str(&w, s->tag);
    model_service_limits_write(&s->limits, &w);
    jsonw_str(&w, s->scaling);
    jsonw_str(&w, s->fired);
    jsonw_str(&w, s->rollout);
    for (size_t i = 0; i < s->revision_count; i++) {
        const struct model_service_revision *revision = &s->revisions[i];

        jsonw_int(&w, revision->number);
        model_service_spec_write(revision->spec, &w);
        jsonw_str(&w, revision->note);
        jsonw_str(&w, uuid_format(&revision->creator_id, id));
        jsonw_int(&w, revision->created_usec);
        jsonw_int(&w, revision->failures);
    }
    for (size_t i = 0; i < s->token_count; i++) {
        const struct model_service_token *token = &s->tokens[i];

        jsonw_str(&w, uuid_format(&token->id, id));
        jsonw_str(&w, token->hash);
        jsonw_str(&w, token->label);
        model_service_token_write_paths(token, &w);
        jsonw_int(&w, token->expires_usec);
        jsonw_int(&w, token->rate_milli);
        jsonw_int(&w, token->budget);
        jsonw_int(&w, token->used);
        jsonw_int(&w, token->requests);
        jsonw_str(&w, uuid_format(&token->creator_id, id));
        jsonw_int(&w, token->created_usec);
        jsonw_int(&w, token->used_usec);
    }
    jsonw_array_end(&w);
}

bool model_service_equals(const struct model_service *a, const struct model_service *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text_a = STRBUF_INIT, text_b = STRBUF_INIT;

    service_write_all(a, &text_a);
    service_write_all(b, &text_b);
    return uuid_equals(&a->id, &b->id) && a->version == b->version
           && uuid_equals(&a->user_id, &b->user_id) && uuid_equals(&a->project_id, &b->project_id)
           && a->is_public == b->is_public && a->replicas == b->replicas
           && a->replicas_min == b->replicas_min && a->replicas_max == b->replicas_max
           && a->share_micro == b->share_micro && a->goal == b->goal
           && a->last_number == b->last_number && a->created_usec == b->created_usec
           && a->is_ending == b->is_ending && a->is_forced == b->is_forced
           && a->ended_usec == b->ended_usec && strcmp(text_a.data, text_b.data) == 0;
}

const struct model_service_revision *model_service_find_revision(const struct model_service *s,
                                                                 int64_t number)
{
    for (size_t i = 0; i < s->revision_count; i++)
        if (s->revisions[i].number == number)
            return &s->revisions[i];
    return NULL;
}

const struct model_service_token *model_service_find_token(const struct model_service *s,
                                                           const struct uuid *id)
{
    for (size_t i = 0; i < s->token_count; i++)
        if (uuid_equals(&s->tokens[i].id, id))
            return &s->tokens[i];
    return NULL;
}
