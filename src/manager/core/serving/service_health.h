/* SPDX-License-Identifier: Apache-2.0 */
/* service_health.h - which replicas take requests
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_SERVING_SERVICE_HEALTH_H
#define AQ_MANAGER_CORE_SERVING_SERVICE_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

#include "manager/core/services.h"
#include "serving/replica_plan.h"

struct msg_kernel_health;
struct replica_entry;
struct session_entry;

/* The agent that has the kernel said it. A kernel that is not the main one of a replica, or was
 * started again since, is skipped.
 */
void service_note_health(struct core *core, const char *agent_id,
                         const struct msg_kernel_health *health);

/* The program of the kernel has ended, with these lines at the end of its log; NULL = none. Kept of
 * the main kernel of a replica alone.
 */
void service_note_last_lines(struct session_entry *l, size_t rank, const char *lines);

/* As clients and proxies see it. */
enum core_replica_health service_replica_health(const struct core *core,
                                                const struct replica_entry *replica);

/* For the plan of its service: ready also if the step under way proposes that it is. */
enum replica_stage service_replica_stage(const struct core *core,
                                         const struct replica_entry *replica);

/* It runs, its agent says that it is ready, and its row does not yet. */
bool service_replica_became_ready(const struct replica_entry *replica);

#endif
