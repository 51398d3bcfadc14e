/* SPDX-License-Identifier: Apache-2.0 */
/* serving_params.c - see serving_params.h */
#include "manager/serving/serving_params.h"

#include <errno.h>
#include <math.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "manager/serving/serving_rollout.h"
#include "manager/serving/serving_scale.h"
#include "model/folder_mount.h"

#define AT(member) offsetof(struct serving_params, member)
#define SPEC(member) AT(spec.member)
#define DAY 86400
#define LIMIT_MAX 1000000

static const struct field health_fields[] = {
    { "path", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, SPEC(health_path), 1, 1024,
      .doc = "what is asked for by GET; null: a connection that is accepted will do" },
    { "status", FIELD_INT, FIELD_NULLABLE, SPEC(health_status), 100, 599,
      .doc = "of the answer; default 200" },
    { "interval", FIELD_DURATION, FIELD_NULLABLE, SPEC(health_interval_usec), 1, 3600,
      .doc = "between two probes; default 10 seconds" },
    { "timeout", FIELD_DURATION, FIELD_NULLABLE, SPEC(health_timeout_usec), 1, 600,
      .doc = "of one; default 15 seconds" },
    { "retries", FIELD_INT, FIELD_NULLABLE, SPEC(health_retries), 1, 1000,
      .doc = "failures in a row after which a replica is unhealthy; default 10" },
    FIELD_END,
};

static const struct field limits_fields[] = {
    { "cap", FIELD_INT, FIELD_NULLABLE, AT(limits.cap), 0, LIMIT_MAX,
      .doc = "requests under way in one replica, over all proxies; 0 = no limit" },
    { "queue", FIELD_INT, FIELD_NULLABLE, AT(limits.queue), 0, LIMIT_MAX,
      .doc = "requests that wait, in each proxy; 0 = 1000" },
    { "queue_bytes", FIELD_SCALAR, FIELD_NULLABLE, AT(limits.queue_bytes), 1, 64,
      .doc = "and their bytes, a size such as 64m; 0 = 64 MiB" },
    { "queue_timeout", FIELD_DURATION, FIELD_NULLABLE, AT(limits.queue_timeout_usec), 0, DAY,
      .doc = "how long one waits; 0 = 10 minutes" },
    { "request_timeout", FIELD_DURATION, FIELD_NULLABLE, AT(limits.request_timeout_usec), 0, DAY,
      .doc = "without a byte of an answer; 0 = 10 minutes" },
    { "drain_timeout", FIELD_DURATION, FIELD_NULLABLE, AT(limits.drain_timeout_usec), 0, DAY,
      .doc = "for requests under way in a replica that is to end; 0 = 10 minutes" },
    { "affinity", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(limits.affinity), 0, 128,
      .doc = "requests that go to the same replica if it has room: header:NAME, of one value, or "
             "prompt, of one beginning; default none" },
    FIELD_END,
};

/* clang-format off */
#define ROLLOUT                                                                                    \
    { "rollout", FIELD_OBJECT, FIELD_NULLABLE, AT(rollout),                                        \
      .doc = "how replicas of a new revision take the place of others; without 'strategy' members " \
             "change the present settings; null: rolling, one more at a time" }
#define CHANGES                                                                                    \
    { "replicas", FIELD_SCALAR, FIELD_NULLABLE, AT(replicas), 1, 16,                               \
      .doc = "a number, or the bounds of what is wanted such as 0-8; default 1" },                 \
    { "tag", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(tag), 0, 64 },                             \
    { "public", FIELD_MAYBE, FIELD_NULLABLE, AT(is_public),                                        \
      .doc = "requests need no token" },                                                           \
    { "limits", FIELD_STRUCT, FIELD_NULLABLE, .sub = limits_fields },                              \
    { "scaling", FIELD_OBJECT, FIELD_NULLABLE, AT(scaling),                                        \
      .doc = "rules by which replicas come and go between their bounds; null: by requests under " \
             "way" },                                                                              \
    ROLLOUT
#define REVISION(image_flags)                                                                      \
    { "image", FIELD_STR, image_flags, SPEC(session.image), 1, 512 },                              \
    { "architecture", FIELD_STR, FIELD_NULLABLE, SPEC(session.architecture), 1, 32 },              \
    { "model", FIELD_STR, FIELD_NULLABLE, SPEC(model), 1, 128,                                     \
      .doc = "folder with the model, by name or id, which replicas mount read-only; null: it is in " \
             "the image" },                                                                        \
    { "model_target", FIELD_STR, FIELD_NULLABLE, SPEC(model_target), 1, 1024,                      \
      .doc = "where it is mounted; default /models" },                                             \
    { "definition", FIELD_STR, FIELD_NULLABLE, SPEC(definition_path), 1, 1024,                     \
      .doc = "file in the folder that says how the model is served; default: " \
             "model-definition.yaml or .yml, if it is there and runtime is custom" },              \
    { "runtime", FIELD_STR, FIELD_NULLABLE, SPEC(runtime), 1, 64,                                  \
      .doc = "the inference server, such as vllm; default custom" },                               \
    { "command", FIELD_STR, FIELD_NULLABLE, SPEC(session.command), 1, SESSION_COMMAND_MAX,         \
      .doc = "of a replica; default: as definition or runtime say, else the image's own" },        \
    { "port", FIELD_INT, FIELD_NULLABLE, SPEC(port), 1, 65535,                                     \
      .doc = "at which it takes requests; default: as definition or runtime say" },                \
    { "health", FIELD_STRUCT, FIELD_NULLABLE, .sub = health_fields },                              \
    { "ready_timeout", FIELD_DURATION, FIELD_NULLABLE, SPEC(ready_usec), 1, 7 * DAY,               \
      .doc = "a replica that is not ready so long after its start is replaced; default 30 minutes" }, \
    { "environ", FIELD_PAIRS, FIELD_NULLABLE, SPEC(session.environ), 0, SESSION_VARIABLES_MAX },   \
    { "resources", FIELD_OBJECT, FIELD_NULLABLE, AT(resources),                                    \
      .doc = "of each kernel, as {\"cuda.shares\": \"0.25\"}" },                                   \
    { "shmem", FIELD_SCALAR, FIELD_NULLABLE, SPEC(session.shmem), 1, 64,                           \
      .doc = "shared memory, of what is asked for as mem" },                                       \
    { "bootstrap", FIELD_STR, FIELD_NULLABLE, SPEC(session.bootstrap), 1, SESSION_BOOTSTRAP_MAX,   \
      .doc = "shell text that is run before the command" },                                        \
    { "cluster_size", FIELD_INT, FIELD_NULLABLE, SPEC(cluster_size), 1, 1000,                      \
      .doc = "kernels of a replica; default 1" },                                                  \
    { "cluster_mode", FIELD_WORD, FIELD_NULLABLE, SPEC(is_multi_node),                             \
      .words = "single-node|multi-node" },                                                         \
    { "mounts", FIELD_STR_LIST, FIELD_NULLABLE, SPEC(mounts), 0, FOLDER_MOUNTS_MAX,                \
      .doc = "further folders, FOLDER[:TARGET[:ro]] each" },                                       \
    { "priority", FIELD_INT, FIELD_NULLABLE, SPEC(priority), 0, 100, .doc = "default 10" },        \
    { "note", FIELD_STR, FIELD_NULLABLE | FIELD_LINES, AT(note), 0, 256,                           \
      .doc = "why the revision was made, for people" }
#define OWNER                                                                                      \
    { "group", FIELD_STR, FIELD_NULLABLE, AT(group), 1, 64,                                        \
      .doc = "project; default: \"default\", or the only one" },                                   \
    { "domain", FIELD_STR, FIELD_NULLABLE, AT(domain), 1, 64, .doc = "default: the owner's" },     \
    { "resource_group", FIELD_STR, FIELD_NULLABLE, AT(resource_group), 1, 64,                      \
      .doc = "default: the first one allowed" },                                                   \
    { "owner_access_key", FIELD_STR, FIELD_NULLABLE, AT(owner_access_key), 1, 64,                  \
      .doc = "act for this key; administrators" }
/* clang-format on */

const struct field serving_create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED, AT(name), 1, 64 },
    REVISION(FIELD_REQUIRED),
    CHANGES,
    OWNER,
    FIELD_END,
};
const struct field serving_trial_fields[] = { REVISION(FIELD_REQUIRED), OWNER, FIELD_END };
const struct field serving_change_fields[] = {
    CHANGES,
    { "note", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(note), 0, 256,
      .doc = "why, for people; the history shows it" },
    FIELD_END,
};
const struct field serving_revision_fields[] = { REVISION(FIELD_NULLABLE), ROLLOUT, FIELD_END };

/* ---- what was given ---- */

static bool serving_has(const json_t *given, const char *name)
{
    return !given || json_object_get(given, name);
}

/* ---- the service ---- */

/* "3" or "0-8", into bounds and the number wanted now. */
static int serving_read_replicas(const char *text, struct model_service *s, struct aq_error *err)
{
    char *end;
    long min, max;

    errno = 0;
    min = max = strtol(text, &end, 10);
    if (end != text && *end == '-') {
        const char *second = end + 1;

        max = strtol(second, &end, 10);
        end = *second < '0' || *second > '9' ? (char *)(uintptr_t)text : end;
    }
    if (*text < '0' || *text > '9' || *end || errno)
        return api_fail_param(err, "replicas",
                              "'%s' is neither a number such as 3 nor bounds such as 0-8", text);
    if (min > max || max > MODEL_SERVICE_REPLICAS_MAX)
        return api_fail_param(err, "replicas", "'%s' is not within 0-%d%s", text,
                              MODEL_SERVICE_REPLICAS_MAX,
                              min > max ? ", the lower bound first" : "");
    s->replicas_min = min;
    s->replicas_max = max;
    s->replicas = AQ_MIN(AQ_MAX(s->replicas, min), max);
    return 0;
}

static int serving_read_limits(const struct serving_params *params, const json_t *given,
                               struct model_service_limits *limits, struct aq_error *err)
{
    int64_t bytes = 0;

    if (json_is_null(given)) {
        free(limits->affinity);
        *limits = (struct model_service_limits){ .cap = 0 };
        return 0;
    }
    if (serving_has(given, "cap"))
        limits->cap = params->limits.cap;
    if (serving_has(given, "queue"))
        limits->queue_max = params->limits.queue;
    if (serving_has(given, "queue_timeout"))
        limits->queue_usec = params->limits.queue_timeout_usec;
    if (serving_has(given, "request_timeout"))
        limits->request_usec = params->limits.request_timeout_usec;
    if (serving_has(given, "drain_timeout"))
        limits->drain_usec = params->limits.drain_timeout_usec;
    if (serving_has(given, "affinity")) {
        const char *affinity = params->limits.affinity;

        free(limits->affinity);
        limits->affinity = affinity && *affinity && strcmp(affinity, "none") != 0
                               ? aq_strdup(affinity)
                               : NULL;
    }
    if (params->limits.queue_bytes
        && slot_amount_parse(params->limits.queue_bytes, strlen(params->limits.queue_bytes),
                             SLOT_BYTES, false, "queue_bytes", &bytes, NULL)
               < 0)
        return api_fail_param(err, "limits.queue_bytes", "'%s' is not a size such as 64m",
                              params->limits.queue_bytes);
    if (serving_has(given, "queue_bytes"))
        limits->queue_bytes = bytes;
    return 0;
}

/* A borrowed object as text of the arena; NULL = there is none. */
static const char *serving_keep_object(const json_t **inout, struct arena *arena)
{
    AQ_CLEANUP(aq_freep) char *text = *inout ? json_dump_text(*inout, JSON_COMPACT) : NULL;

    *inout = NULL;
    return text ? arena_strdup(arena, text) : NULL;
}

void serving_params_keep(struct serving_params *params, struct arena *arena)
{
    params->scaling_text = serving_keep_object(&params->scaling, arena);
    params->rollout_text = serving_keep_object(&params->rollout, arena);
}

static int serving_read_scaling(const char *scaling, struct model_service *s, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct autoscale rules;
    int r;

    free(AQ_TAKE(s->scaling));
    s->scaling = scaling ? aq_strdup(scaling) : NULL;
    r = serving_scale_rules(s, &arena, &rules, err);
    if (r < 0)
        err->kind = "invalid-api-params";
    return r;
}

int serving_params_apply(const struct serving_params *params, const json_t *given,
                         struct model_service *s, struct aq_error *err)
{
    int r = 0;

    if (params->tag && strcmp(params->tag, SERVING_TRIAL_TAG) == 0)
        return api_fail_param(err, "tag", "'%s' is reserved; choose another tag", params->tag);
    if (serving_has(given, "tag")) {
        free(s->tag);
        s->tag = params->tag && *params->tag ? aq_strdup(params->tag) : NULL;
    }
    if (serving_has(given, "public"))
        s->is_public = params->is_public == MAYBE_TRUE;
    if (serving_has(given, "replicas"))
        r = serving_read_replicas(params->replicas ? params->replicas : "1", s, err);
    if (r == 0 && serving_has(given, "limits"))
        r = serving_read_limits(params, json_object_get(given, "limits"), &s->limits, err);
    if (r == 0 && serving_has(given, "scaling"))
        r = serving_read_scaling(params->scaling_text, s, err);
    if (r == 0 && serving_has(given, "rollout"))
        r = serving_rollout_apply(params->rollout_text, s, err);
    return r;
}

/* ---- the revision ---- */

/* As texts, without what is 0: clients name every slot that they have heard of. */
static int serving_read_resources(const json_t *resources, const struct slot_types *types,
                                  struct arena *arena, struct pair_list *ret, struct aq_error *err)
{
    json_auto_t *wanted = json_object();
    struct slots amounts = { .count = 0 };
    struct pair_list list = {
        arena_array(arena, json_object_size(resources) + 1, sizeof(struct text_pair)), 0
    };
    const char *name;
    json_t *amount;
    int r;

    json_object_foreach((json_t *)(uintptr_t)resources, name, amount) {
        const char *text = json_string_value(amount);

        if (!json_is_null(amount) && !(json_is_number(amount) && json_number_value(amount) == 0)
            && !(text && strcmp(text, "0") == 0))
            (void)json_object_set(wanted, name, amount);
    }
    r = slots_from_json(wanted, types, &amounts, err);
    slots_done(&amounts);
    if (r < 0) {
        char slot[sizeof(err->field)];

        memcpy(slot, err->field, sizeof(slot));
        (void)snprintf(err->field, sizeof(err->field), "resources.%.64s", slot);
        err->kind = "invalid-api-params";
        return r;
    }
    json_object_foreach(wanted, name, amount) {
        AQ_CLEANUP(aq_freep) char *number = json_is_string(amount)
                                                ? NULL
                                                : json_dumps(amount, JSON_ENCODE_ANY);
        const char *text = number ? number : json_string_value(amount);

        list.items[list.count++] = (struct text_pair){ arena_strdup(arena, name),
                                                       arena_strdup(arena, text) };
    }
    *ret = list;
    return 0;
}

static void serving_apply_health(const struct model_service_spec *from, const json_t *given,
                                 struct model_service_spec *spec)
{
    bool is_null = json_is_null(given);

    if (is_null || serving_has(given, "path"))
        spec->health_path = from->health_path;
    if (is_null || serving_has(given, "status"))
        spec->health_status = from->health_status;
    if (is_null || serving_has(given, "interval"))
        spec->health_interval_usec = from->health_interval_usec;
    if (is_null || serving_has(given, "timeout"))
        spec->health_timeout_usec = from->health_timeout_usec;
    if (is_null || serving_has(given, "retries"))
        spec->health_retries = from->health_retries;
}

static void serving_apply_texts(const struct model_service_spec *from, const json_t *given,
                                struct model_service_spec *spec)
{
    const struct {
        const char *name;
        const char *from, **to;
    } texts[] = {
        { "image", from->session.image, &spec->session.image },
        { "architecture", from->session.architecture, &spec->session.architecture },
        { "model_target", from->model_target, &spec->model_target },
        { "definition", from->definition_path, &spec->definition_path },
        { "runtime", from->runtime, &spec->runtime },
        { "command", from->session.command, &spec->session.command },
        { "shmem", from->session.shmem, &spec->session.shmem },
        { "bootstrap", from->session.bootstrap, &spec->session.bootstrap },
    };

    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        if (serving_has(given, texts[i].name))
            *texts[i].to = texts[i].from;
    if (serving_has(given, "model")) {
        spec->model = from->model; /* a name until it is found */
        spec->model_name = NULL;
    }
}

int serving_params_apply_spec(const struct serving_params *params, const json_t *given,
                              const struct slot_types *types, struct arena *arena,
                              struct model_service_spec *spec, struct aq_error *err)
{
    const struct model_service_spec *from = &params->spec;

    if (json_is_null(json_object_get(given, "image")))
        return api_fail_param(err, "image", "cannot be unset");
    serving_apply_texts(from, given, spec);
    if (serving_has(given, "port"))
        spec->port = from->port;
    if (serving_has(given, "health"))
        serving_apply_health(from, json_object_get(given, "health"), spec);
    if (serving_has(given, "ready_timeout"))
        spec->ready_usec = from->ready_usec;
    if (serving_has(given, "environ"))
        spec->session.environ = from->session.environ;
    if (serving_has(given, "splitting"))
        spec->session.splitting = from->session.splitting;
    if (serving_has(given, "cluster_size"))
        spec->cluster_size = from->cluster_size;
    if (serving_has(given, "cluster_mode"))
        spec->is_multi_node = from->is_multi_node;
    if (serving_has(given, "mounts"))
        spec->mounts = from->mounts;
    if (serving_has(given, "priority"))
        spec->priority = from->priority;
    if (serving_has(given, "resources"))
        return serving_read_resources(params->resources, types, arena, &spec->resources, err);
    return 0;
}

/* ---- tokens ---- */

#define TOKEN_AT(member) offsetof(struct serving_token_params, member)
#define TOKEN_SECONDS_MAX (INT64_C(10) * 365 * DAY)

const struct field serving_token_fields[] = {
    { "label", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, TOKEN_AT(label), 1, 64,
      .doc = "for people, who can name the token by it" },
    { "duration", FIELD_DURATION, FIELD_NULLABLE, TOKEN_AT(duration_usec), 1, TOKEN_SECONDS_MAX,
      .doc = "how long it is valid: seconds, or a text such as 3d; default: until it is revoked" },
    { "expires_at", FIELD_STR, FIELD_NULLABLE, TOKEN_AT(expires_at), 1, 64,
      .doc = "a date, instead of duration" },
    { "paths", FIELD_STR_LIST, FIELD_NULLABLE, TOKEN_AT(paths), 0, SERVING_TOKEN_PATHS_MAX,
      .doc = "prefixes of paths that it is for, such as /v1/chat; default all" },
    { "rate", FIELD_JSON, FIELD_NULLABLE, TOKEN_AT(rate),
      .doc = "requests a second, a number such as 0.5; 0 = no limit" },
    { "budget", FIELD_INT, FIELD_NULLABLE, TOKEN_AT(budget), 0, INT64_MAX / 2,
      .doc = "OpenAI tokens of prompts and completions in all; 0 = no limit" },
    FIELD_END,
};

static int serving_token_read_expiry(const struct serving_token_params *params, int64_t now_usec,
                                     int64_t *ret, struct aq_error *err)
{
    *ret = params->duration_usec ? now_usec + params->duration_usec : 0;
    if (!params->expires_at)
        return 0;
    if (params->duration_usec)
        return api_fail_param(err, "expires_at", "give duration or expires_at, not both");
    if (clock_parse_date(params->expires_at, ret) < 0)
        return api_fail_param(err, "expires_at", "'%.40s' is not a date such as 2026-12-01T12:00",
                              params->expires_at);
    if (*ret <= now_usec)
        return api_fail_param(err, "expires_at", "'%.40s' is past; choose a later date",
                              params->expires_at);
    return 0;
}

static int serving_token_read_rate(const json_t *rate, int64_t *ret, struct aq_error *err)
{
    const char *text = json_string_value(rate);
    char *end = NULL;
    double number = text ? strtod(text, &end) : json_number_value(rate);

    *ret = 0;
    if (!rate || json_is_null(rate))
        return 0;
    if ((text && (!*text || *end)) || !(text || json_is_number(rate)) || !isfinite(number)
        || number < 0 || number > LIMIT_MAX || (number > 0 && number < 0.001))
        return api_fail_param(err, "rate",
                              "expected requests a second from 0.001 to %d, or 0 for no limit",
                              LIMIT_MAX);
    *ret = (int64_t)llround(number * 1000);
    return 0;
}

static int serving_token_copy_paths(const struct str_list *paths, struct str_list *ret,
                                    struct aq_error *err)
{
    if (!paths->count)
        return 0;
    ret->items = aq_alloc_array(paths->count, sizeof(*ret->items));
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        uint32_t code;

        if (*path != '/' || strlen(path) > 256 || strpbrk(path, "?# ")
            || !utf8_is_shown(path, strlen(path), &code))
            return api_fail_param(err, "paths",
                                  "'%.64s' is not the beginning of a path such as /v1/chat", path);
        ret->items[ret->count++] = aq_strdup(path);
    }
    return 0;
}

/* "aqs-" and 32 random bytes; the hash is what is kept. */
static int serving_token_generate(char text[SERVING_TOKEN_TEXT_MAX],
                                  char hash[MODEL_SERVICE_TOKEN_HASH + 1], struct aq_error *err)
{
    unsigned char secret[32], digest[32], encoded[48];
    size_t at = sizeof(SERVING_TOKEN_PREFIX) - 1;

    if (RAND_bytes(secret, sizeof(secret)) != 1)
        return aq_fail(err, EIO, "OpenSSL has no random bytes for a token");
    (void)EVP_EncodeBlock(encoded, secret, sizeof(secret));
    (void)snprintf(text, SERVING_TOKEN_TEXT_MAX, SERVING_TOKEN_PREFIX "%.43s",
                   (const char *)encoded);
    for (char *c = text + at; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    (void)EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(hash + 2 * i, 3, "%02x", digest[i]);
    return 0;
}

int serving_token_make(const struct serving_token_params *params, int64_t now_usec,
                       struct model_service_token *ret, char ret_text[SERVING_TOKEN_TEXT_MAX],
                       struct aq_error *err)
{
    struct model_service_token token = { .budget = params->budget };
    int r = serving_token_read_expiry(params, now_usec, &token.expires_usec, err);

    if (r == 0)
        r = serving_token_read_rate(params->rate, &token.rate_milli, err);
    if (r == 0)
        r = serving_token_copy_paths(&params->paths, &token.paths, err);
    if (r == 0)
        r = serving_token_generate(ret_text, token.hash, err);
    if (r < 0) {
        model_service_token_done(&token);
        return r;
    }
    token.label = params->label ? aq_strdup(params->label) : NULL;
    *ret = token;
    return 0;
}
