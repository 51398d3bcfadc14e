/* SPDX-License-Identifier: Apache-2.0 */
/* service_world.h - model services in the world of world.h, by the names that tests give them */
#ifndef AQ_TESTS_UNIT_MANAGER_SERVICE_WORLD_H
#define AQ_TESTS_UNIT_MANAGER_SERVICE_WORLD_H

#include "world.h"

#include "manager/core/services.h"

struct model_service_spec spec_of(const char *command);
struct model_service wish(const char *name, int64_t replicas);
struct answer try_create(struct model_service *s);
const struct model_service *serve(const char *name, int64_t replicas);
struct core_replica find(const struct session *s);
/* Its n-th replica that lives. */
const struct session *replica_of(const struct model_service *s, size_t n);
size_t count_replicas(const struct model_service *s);
struct sent order_of(const struct session *session);
/* The manager starts again, and the agent "a" says that the replicas that ran run. */
const struct model_service *restarts(const char *name, const char *slots);
void says_health(const struct session *session, const char *state, const char *text);
/* It runs, and is ready. */
void becomes_ready(const struct session *session);
struct answer change(const struct model_service *s,
                     void (*edit)(struct model_service *s, int64_t value), int64_t value);
void set_replicas(struct model_service *s, int64_t value);
void add_revision(struct model_service *s, int64_t value);
void set_goal(struct model_service *s, int64_t value);
void ends(struct uuid id);
void exits(const struct session *session, int code);
const struct session *named(const char *name);

#endif
