/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_endpoint.h - model services as clients of Backend.AI see them: endpoints and routes
 *
 * A service is an endpoint with the service's id; a replica is a route with the id of its session.
 * Rows are in an arena and hold copies, so they stay valid when the service changes. Texts that are
 * not known are "", as filters in memory need.
 */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_ENDPOINT_H
#define AQ_MANAGER_SERVING_BACKENDAI_ENDPOINT_H

#include "graphql/resolver.h"
#include "manager/call/api.h"
#include "manager/core/services.h"
#include "manager/serving/serving_view.h"
#include "serving/autoscale.h"

struct endpoint_route {
    struct uuid id, endpoint_id;
    const char *url;                  /* of the endpoint */
    const char *status;               /* PROVISIONING, HEALTHY, UNHEALTHY or TERMINATING */
    const char *health;               /* not_checked, healthy or unhealthy */
    const char *lifecycle;            /* PROVISIONING, RUNNING or TERMINATING */
    const char *error_data, *problem; /* as JSON, and as text; "" = none */
    int64_t revision;                 /* number */
    int64_t ratio_ppm, created_usec;
};

struct endpoint_token {
    struct uuid id, endpoint_id, project_id, creator_id;
    const char *text, *domain;
    int64_t created_usec, expires_usec; /* 0 = never */
};

struct endpoint_folder {
    struct uuid id;
    const char *target; /* "" = below the work folder, by its name */
    bool is_read_only;
};

struct endpoint_row {
    struct uuid id, user_id, project_id, creator_id, model_id; /* model_id: nil = in the image */
    const char *id_text, *name, *domain, *project, *resource_group, *url, *tag;
    const char *image, *architecture, *model, *model_target, *definition, *runtime;
    const char *command, *bootstrap, *shmem, *cluster_mode;
    const char *resources, *resource_opts, *environ; /* JSON */
    const char *owner_email, *creator_id_text, *creator_email;
    const char *status, *lifecycle, *problem;
    int64_t replicas, ready, cluster_size, created_usec, destroyed_usec, failures;
    int64_t public_flag; /* is_public, for filters */
    bool is_public;
    int64_t revision; /* number of the goal; 0 = it has none yet */
    /* As a deployment: a word, its index in DeploymentStatus, and the same of the strategy; of the
     * revisions the number of that which served before, or serves, and of that which comes (0 =
     * none).
     */
    const char *phase;
    int deployment_status, strategy;
    int64_t current, deploying;
    struct endpoint_route *routes;   /* that have not ended, by creation */
    struct endpoint_folder *folders; /* but for the model's */
    struct endpoint_token *tokens;
    uint32_t route_count, folder_count, token_count;
};

/* Of one that lives, has ended, or is about to be created. */
void endpoint_fill(const struct api *api, const struct model_service *s, struct arena *arena,
                   struct endpoint_row *ret);

/* model_service_spec.mounts, those that are named by their ids. */
struct endpoint_folder *endpoint_read_folders(const struct str_list *mounts, struct arena *arena,
                                              uint32_t *ret_count);

/* HEALTHY, DEGRADED, UNHEALTHY, PROVISIONING, DESTROYING or DESTROYED. Pure. */
const char *endpoint_status(const struct model_service *s, const struct serving_counts *counts,
                            bool is_failing);

/* So many replicas are wanted. Without rules they are not changed by anything else. */
void endpoint_set_replicas(struct model_service *s, int64_t count);
/* The bounds of the service are those of its rules, between which it is scaled; a rule without a bound
 * goes down to 1 and up to MODEL_SERVICE_REPLICAS_MAX. Without rules it stays as it is now.
 */
void endpoint_set_bounds(struct model_service *s, const struct autoscale *rules);

/* {"endpoint_id", ...}, as GET /services/{id} answers; and a row of GET /services. */
void endpoint_write(const struct endpoint_row *row, struct jsonw *w);
void endpoint_write_short(const struct endpoint_row *row, struct jsonw *w);

/* live_stat of a struct endpoint_row and of a struct endpoint_route: gql_get_fn. */
struct gql_value endpoint_get_live_stat(struct gql_get *get, const void *parent);
struct gql_value endpoint_route_get_live_stat(struct gql_get *get, const void *parent);

#endif
