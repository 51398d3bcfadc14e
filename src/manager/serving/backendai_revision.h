/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_revision.h - revisions of model services, and the runtimes that they name, as newer clients
 * of Backend.AI see them
 *
 * Rows are in an arena and hold copies.
 */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_REVISION_H
#define AQ_MANAGER_SERVING_BACKENDAI_REVISION_H

#include "manager/serving/backendai_endpoint.h"
#include "serving/runtime.h"

struct revision_row {
    struct uuid id, service_id;
    const char *id_text;
    int64_t number, created_usec;
    struct model_service_spec asked; /* before definition and runtime completed it */
    int64_t port, health_status, health_retries, cluster_size; /* as they are */
    double health_interval_sec, health_timeout_sec, ready_sec;
    const char *health_path;                     /* NULL = none */
    const char *mode, *runtime, *target, *title; /* title: the model's */
    const char *image_id_text, *model_id_text;   /* for filters; "" = none */
    struct uuid model_id;                        /* nil = in the image */
    struct endpoint_folder *folders;
    uint32_t folder_count;
};

/* That of a service's revision: it follows from both. */
struct uuid backendai_revision_id(const struct uuid *service_id, int64_t number);
/* The one of this id; NULL = the service keeps none of that id. */
const struct model_service_revision *backendai_revision_find(const struct model_service *s,
                                                             const struct uuid *id);

/* -EINVAL: what was asked for cannot be read. */
int backendai_revision_fill(const struct model_service *s,
                            const struct model_service_revision *revision, struct arena *arena,
                            struct revision_row *ret, struct aq_error *err);

/* That of a runtime, which has a name alone; and the runtime of an id, NULL = there is none. */
struct uuid backendai_runtime_id(const char *name);
const struct serving_runtime *backendai_runtime_find(const struct uuid *id);

#endif
