/* SPDX-License-Identifier: Apache-2.0 */
/* serving_prometheus.h - queries of scaling rules to the Prometheus server of the site
 *
 * Equal queries of several services are one. Each is sent every 15 s; at most 8 are under way, each for
 * at most 10 s. Values are in memory. Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_PROMETHEUS_H
#define AQ_MANAGER_SERVING_SERVING_PROMETHEUS_H

#include <uv.h>

#include "base/error.h"
#include "base/uuid.h"

/* [serving] of manager.toml; members may be NULL. */
struct prometheus_settings {
    char *url;                  /* without it there is no server */
    char *ca;                   /* PEM file; NULL = the system's */
    char *token_file;           /* whose contents are sent as a bearer token */
    char *user, *password_file; /* basic authentication */
};

struct serving_prometheus;

/* 'settings' are borrowed. -EINVAL with the setting as field; -errno of files. */
int serving_prometheus_new(uv_loop_t *loop, const struct prometheus_settings *settings,
                           struct serving_prometheus **ret, struct aq_error *err);
/* NULL is fine. */
void serving_prometheus_free(struct serving_prometheus *prometheus);

/* This query is needed, for a service of this user. */
void serving_prometheus_want(struct serving_prometheus *prometheus, const char *query,
                             const struct uuid *user_id);
/* What was not wanted since the last call is forgotten, and queries that are due are sent, eight at a
 * time, in which users take turns; every second.
 */
void serving_prometheus_run(struct serving_prometheus *prometheus);

/* The last value, for 60 s; NAN if it is not known, infinite, or not a number. *ret_problem, unless
 * NULL, is then why, valid until the loop runs again; NULL = no answer has come yet.
 */
double serving_prometheus_get(const struct serving_prometheus *prometheus, const char *query,
                              const char **ret_problem);

/* Ask the server for a number, and wait for it, with a loop of its own; for "aliquot doctor". 0, or as
 * serving_prometheus_new(), or -EIO with the server's problem.
 */
int serving_prometheus_try(const struct prometheus_settings *settings, struct aq_error *err);

#endif
