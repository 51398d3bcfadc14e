/* SPDX-License-Identifier: Apache-2.0 */
/* serving_params.h - requests that create or change model services, revisions and tokens */
#ifndef AQ_MANAGER_SERVING_SERVING_PARAMS_H
#define AQ_MANAGER_SERVING_SERVING_PARAMS_H

#include <jansson.h>

#include "manager/call/api.h"
#include "model/model_service.h"

#define SERVING_PRIORITY_DEFAULT 10
#define SERVING_TRIAL_TAG "aliquot:trial" /* of services that are tried; requests cannot give it */

/* What requests of all kinds say. Members that were not given are zeroed. Texts are in the request's
 * arena; 'resources' is borrowed from the request's JSON.
 */
struct serving_params {
    const char *name, *owner_access_key, *group, *domain, *resource_group;
    const char *replicas; /* "3" or "0-8" */
    const char *tag;
    enum maybe is_public;
    const json_t *scaling; /* borrowed from the request's JSON, until serving_params_keep() */
    const char *scaling_text;
    const json_t *rollout; /* likewise */
    const char *rollout_text;
    struct {
        int64_t cap, queue, queue_timeout_usec, request_timeout_usec, drain_timeout_usec;
        const char *queue_bytes, *affinity;
    } limits;
    const char *note;
    struct model_service_spec spec; /* but for resources, and mounts as they are named */
    const json_t *resources;
};

extern const struct field serving_create_fields[], serving_trial_fields[], serving_change_fields[],
    serving_revision_fields[];

/* After decoding: keep in the arena what is borrowed from the request's JSON, but for 'resources'. */
void serving_params_keep(struct serving_params *params, struct arena *arena);

/* Change the members of the service that 'given', the request's JSON, has (NULL = all): tag, public,
 * replicas, limits, scaling and rollout. A member that is null gets its default. The service's texts are its own.
 * -EINVAL names the field.
 */
int serving_params_apply(const struct serving_params *params, const json_t *given,
                         struct model_service *s, struct aq_error *err) AQ_UNTRUSTED;

/* Change the members of 'spec' that 'given' has; null unsets them. Texts are in the arena. Amounts
 * are checked by 'types' (NULL = only their form). -EINVAL names the field.
 */
int serving_params_apply_spec(const struct serving_params *params, const json_t *given,
                              const struct slot_types *types, struct arena *arena,
                              struct model_service_spec *spec, struct aq_error *err) AQ_UNTRUSTED;

/* ---- tokens ---- */

#define SERVING_TOKEN_PREFIX "aqs-"
#define SERVING_TOKEN_TEXT_MAX 48 /* prefix, 43 characters of base64url, NUL */
#define SERVING_TOKEN_PATHS_MAX 16

struct serving_token_params {
    const char *label, *expires_at;
    int64_t duration_usec;
    struct str_list paths;
    const json_t *rate; /* a number, or a number as text */
    int64_t budget;
};

extern const struct field serving_token_fields[];

/* The token as a row; its contents are to be released with model_service_token_done(). 'ret_text'
 * gets the token itself. -EINVAL names the field.
 */
int serving_token_make(const struct serving_token_params *params, int64_t now_usec,
                       struct model_service_token *ret, char ret_text[SERVING_TOKEN_TEXT_MAX],
                       struct aq_error *err) AQ_UNTRUSTED;

#endif
