/* SPDX-License-Identifier: Apache-2.0 */
/* registry_scan.h - which images a container registry has
 *
 * Blocks, on a thread of its own. By the Registry API v2, and of Harbor by the repositories of
 * its projects.
 */
#ifndef AQ_MANAGER_IMAGE_REGISTRY_SCAN_H
#define AQ_MANAGER_IMAGE_REGISTRY_SCAN_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

/* All texts are the owner's; NULL = not said. */
struct registry_source {
    char *name;                /* HOST[:PORT] as in images' names */
    char *url;                 /* "https://HOST[:PORT]" */
    char *type;                /* "docker", "harbor", "harbor2" */
    char *project;             /* names with commas between: only these; NULL = all */
    char *username, *password; /* both or neither */
    bool skip_verify;
};

/* How far it is: repositories, and which one it is now. From the scan's thread. */
typedef void registry_scan_fn(void *data, size_t done, size_t total, const char *repository);

/* *ret, the caller's, is an array as image_inventory() gives it: {"digest", "names",
 * "architecture", "size_bytes", "labels"} for each image. An error names the repository.
 * -ECANCELED once '*stop' is true, -E2BIG, -EACCES, ...
 */
int registry_scan(const struct registry_source *source, const atomic_bool *stop,
                  registry_scan_fn *on_progress, void *data, json_t **ret, struct aq_error *err);

#endif
