/* SPDX-License-Identifier: Apache-2.0 */
/* rescan.h - container registries are asked for their images, as a background task
 *
 * One at a time, on a thread of its own. What is found of a registry is kept whole, or not at all
 * if anything of it cannot be read. Loop's thread.
 */
#ifndef AQ_MANAGER_IMAGE_RESCAN_H
#define AQ_MANAGER_IMAGE_RESCAN_H

#include "manager/call/api.h"

struct rescan;

/* 'id' is that of the task (tasks.h). 0; -ENOENT: no such registry; -EBUSY: one is under way. */
typedef void rescan_done_fn(void *data, const struct uuid *id, int r, const struct aq_error *err);

/* Begin with the registry of that name, NULL = all. 'done' comes later. -EBUSY at
 * once: then it does not.
 */
int rescan_start(struct api *api, const struct principal *who, const struct audit_who *by,
                 const char *registry, rescan_done_fn *done, void *data, struct aq_error *err);

/* What is under way ends without a result. NULL is fine; blocks for its request. */
void rescan_stop(struct rescan *rescan);

#endif
