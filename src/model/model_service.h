/* SPDX-License-Identifier: Apache-2.0 */
/* model_service.h - model services: what is served, by how many replicas, and who may ask
 *
 * Users see "aliquot service", clients of Backend.AI an "endpoint". A service has revisions, of which
 * one is its goal; each says all that a replica is made from and never changes. A replica is a
 * session of the type inference that names the service and a revision. Tokens let clients ask.
 *
 * Plain data. Only services that have not ended live in memory. 'version' counts changes of the row;
 * the store refuses a change that was made from another version. Times are wall-clock microseconds.
 * Texts and arrays are the service's own unless it says otherwise. Pure.
 */
#ifndef AQ_MODEL_MODEL_SERVICE_H
#define AQ_MODEL_MODEL_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/lists.h"
#include "base/uuid.h"
#include "model/keypair.h"
#include "model/session_spec.h"

struct wire_shape;

#define MODEL_SERVICE_NAME_MIN 4 /* as clients of Backend.AI make them */
#define MODEL_SERVICE_NAME_MAX 24
#define MODEL_SERVICE_LIVE_MAX 1000            /* in the cluster */
#define MODEL_SERVICE_USER_MAX 100             /* of one user */
#define MODEL_SERVICE_REPLICAS_MAX 256         /* of one */
#define MODEL_SERVICE_TOKENS_MAX 256           /* of one, that are not revoked or expired */
#define MODEL_SERVICE_REVISIONS_MAX 100        /* kept of one; older ones without replicas go */
#define MODEL_SERVICE_REVISION_BYTES (1 << 20) /* of their specs together, likewise */
#define MODEL_SERVICE_TOKEN_HASH 64            /* hexadecimal digits of a SHA-256 */
#define MODEL_SERVICE_APP "model-service"      /* as proxies call the port of a replica */

/* Reasons of replicas that end. */
#define REASON_SERVICE_ENDED "service-ended"
#define REASON_SERVICE_SCALED "service-scaled"     /* fewer replicas are wanted */
#define REASON_SERVICE_REPLACED "service-replaced" /* by one of another revision */
#define REASON_SERVICE_UNREADY "service-unready"   /* it did not become ready in time */

/* What a revision says of a replica. Zeroed: nothing is said. Texts are borrowed, or in the block of
 * model_service_spec_copy(). Images are resolved, folders are named by their ids.
 */
struct model_service_spec {
    struct session_spec
        session; /* image, architecture, command, bootstrap, environ, shmem, tag ... */
    struct pair_list resources; /* of each kernel: {"cuda.shares": "0.25"} */
    int64_t cluster_size;       /* 0 = 1 */
    bool is_multi_node;
    int64_t priority;            /* 0..100 */
    const char *runtime;         /* "custom", "cmd", "vllm" ...: serving/runtime.h */
    const char *model;           /* id of the folder; NULL = the model is in the image */
    const char *model_name;      /* the folder's, to speak of it */
    const char *model_target;    /* where it is mounted, read only; NULL = "/models" */
    const char *definition_path; /* in the folder; NULL = none was read */
    struct str_list mounts;      /* "FOLDER[:TARGET[:ro]]" */
    int64_t port;                /* at which a replica takes requests */
    const char *health_path;     /* NULL = a connection that is accepted will do */
    int64_t health_status;       /* 0 = 200 */
    int64_t health_interval_usec, health_timeout_usec; /* 0 = 10 s, 15 s */
    int64_t health_retries;                            /* 0 = 10 */
    /* JSON of the spec as it was asked for, before definition and runtime completed it; NULL = as
     * it is here.
     */
    const char *given;
    int64_t ready_usec; /* a replica that is not ready so long after its start is ended;
                                     0 = 30 minutes */
};

extern const struct wire_shape model_service_spec_shape;

/* Bounds and forms. -EINVAL with the field as the API calls it: "port", "health.path", "model_target",
 * "resources", and those of session_spec_check().
 */
int model_service_spec_check(const struct model_service_spec *spec, struct aq_error *err);
void model_service_spec_write(const struct model_service_spec *spec, struct jsonw *w);
int model_service_spec_parse(const char *text, struct arena *arena, struct model_service_spec *ret,
                             struct aq_error *err) AQ_UNTRUSTED;
/* A copy in one block, to be released by free(). */
struct model_service_spec *model_service_spec_copy(const struct model_service_spec *spec);

struct model_service_revision {
    int64_t number; /* from 1 */
    struct model_service_spec *spec;
    char *note; /* for people: why it was made; NULL = none */
    struct uuid creator_id;
    int64_t created_usec;
    int64_t failures; /* replicas of it that have failed so far */
};

struct model_service_token {
    struct uuid id;
    char hash[MODEL_SERVICE_TOKEN_HASH + 1];
    char *label;           /* NULL = none */
    struct str_list paths; /* prefixes; empty = all */
    int64_t expires_usec;  /* 0 = never */
    int64_t rate_milli;    /* thousandths of requests a second; 0 = no limit */
    int64_t budget;        /* OpenAI tokens, in all; 0 = no limit */
    int64_t used;          /* of the budget, as far as it is written down */
    int64_t requests;      /* likewise */
    struct uuid creator_id;
    int64_t created_usec, used_usec; /* used_usec: last; 0 = never */
};

/* Contents only. */
void model_service_token_done(struct model_service_token *token);
/* *ret is overwritten. */
void model_service_token_copy(struct model_service_token *ret,
                              const struct model_service_token *token);
/* -EINVAL with field "label", "paths", "expires_at", "rate", "budget" or "hash". */
int model_service_token_check(const struct model_service_token *token, int64_t now_usec,
                              struct aq_error *err);
/* The paths as a JSON list, and back into a token that has none. */
void model_service_token_write_paths(const struct model_service_token *token, struct jsonw *w);
int model_service_token_parse_paths(const char *text, struct model_service_token *token,
                                    struct aq_error *err) AQ_UNTRUSTED;

/* How requests reach replicas, and wait for them. 0 = the default in the comment. */
struct model_service_limits {
    int64_t cap;          /* requests under way in one replica, over all proxies; 0 = no limit */
    int64_t queue_max;    /* requests that wait, in each proxy; 0 = 1000 */
    int64_t queue_bytes;  /* and their bytes; 0 = 64 MiB */
    int64_t queue_usec;   /* how long one waits; 0 = 10 minutes */
    int64_t request_usec; /* without a byte of an answer; 0 = 10 minutes */
    int64_t
        drain_usec; /* a replica that is to end has so long for what is under way; 0 = 10 minutes */
    char *affinity; /* "header:NAME", "prompt"; NULL = none */
};

/* As a JSON object, and back; the texts of *ret are its own. */
void model_service_limits_write(const struct model_service_limits *limits, struct jsonw *w);
int model_service_limits_parse(const char *text, struct model_service_limits *ret,
                               struct aq_error *err) AQ_UNTRUSTED;

struct model_service {
    struct uuid id;
    char name[MODEL_SERVICE_NAME_MAX
              + 1]; /* unique, whatever case, among those that have not ended */
    uint32_t version;
    struct uuid user_id, project_id;
    char access_key[ACCESS_KEY_MAX]; /* of the owner, on whose behalf replicas are made */
    char *domain;
    char *resource_group; /* asked for; NULL = any */
    char *tag;            /* NULL = none */
    bool is_public;       /* clients that reach the proxy need no token */
    int64_t replicas;     /* wanted now, between the next two */
    int64_t replicas_min, replicas_max;
    int64_t
        share_micro; /* of a device that each replica is to have now; 0 = as its revision says */
    int64_t goal;    /* number of the revision that is wanted; 0 = it has none yet */
    int64_t last_number; /* of the newest revision */
    struct model_service_limits limits;
    char *scaling; /* JSON: rules and targets; NULL = replicas are set by hand */
    char *fired; /* JSON: a list of when each rule of 'scaling' changed 'replicas' last, 0 = never;
                      NULL = none has */
    char *rollout; /* JSON: strategy, and where a rollout is; NULL = default */
    int64_t created_usec;
    bool is_ending;                           /* its replicas end; then it has ended */
    bool is_forced;                           /* ... without the time for what is under way */
    int64_t ended_usec;                       /* 0 = it has not */
    struct model_service_revision *revisions; /* by number; all that are kept */
    size_t revision_count;
    struct model_service_token *tokens; /* that are not revoked or expired, by creation */
    size_t token_count;
};

/* Contents only. */
void model_service_done(struct model_service *s);

static inline void model_service_donep(struct model_service *s)
{
    model_service_done(s);
}

/* *ret is overwritten. */
void model_service_copy(struct model_service *ret, const struct model_service *s);
bool model_service_equals(const struct model_service *a, const struct model_service *b);

/* 4..24 characters, ASCII, \w[\w-]*\w; no UUID. -EINVAL with field "name". */
int model_service_check_name(const char *name, struct aq_error *err) AQ_UNTRUSTED;
/* All members but the name of one that exists. -EINVAL with the field as the API calls it. */
int model_service_check(const struct model_service *s, struct aq_error *err);

/* NULL = it is not kept any more. */
const struct model_service_revision *model_service_find_revision(const struct model_service *s,
                                                                 int64_t number);
const struct model_service_token *model_service_find_token(const struct model_service *s,
                                                           const struct uuid *id);

#endif
