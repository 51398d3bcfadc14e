/* SPDX-License-Identifier: Apache-2.0 */
/* image_limits.h - what administrators say that images need and take
 *
 * For each image the least and the most of slots. They count over what the
 * image's own labels say, also before any agent has the image. One setting in
 * the store, read at the start; what is changed counts once it is durable.
 */
#ifndef AQ_MANAGER_IMAGE_IMAGE_LIMITS_H
#define AQ_MANAGER_IMAGE_IMAGE_LIMITS_H

#include "manager/call/api.h"

#define IMAGE_LIMITS_MAX 1000 /* images */

int image_limits_load(struct api *api, struct aq_error *err);

/* {"IMAGE": {"min": {SLOT: AMOUNT}, "max": {...}}}, borrowed until the loop runs again. */
const json_t *image_limits_all(const struct api *api);

/* What holds for the image of that canonical name and labels, by slot:
 * {SLOT: {"min": "1", "max": "4"}}, either may lack. The caller's (json_decref).
 */
json_t *image_limits_shown(const struct api *api, const char *image, const json_t *labels);

/* Replace what was set of an image, named or by alias; with two empty ones only its labels
 * count. 'done' comes when that is durable: -E2BIG for an image too many. Refused at once:
 * -EINVAL with "image" or "SLOT" as field.
 */
int image_limits_set(struct api *api, const char *image, const struct slots *min,
                     const struct slots *max, const struct audit_who *by, store_done_fn done,
                     void *data, struct aq_error *err);

#endif
