/* SPDX-License-Identifier: Apache-2.0 */
/* image_requirements.h - what images want of the containers that run them
 *
 * As their labels say (ai.backend.resource.min.SLOT, .max.SLOT), in the lists
 * that agents send; what was said last counts. An image that no agent has yet
 * wants nothing.
 */
#ifndef AQ_MANAGER_CORE_IMAGE_REQUIREMENTS_H
#define AQ_MANAGER_CORE_IMAGE_REQUIREMENTS_H

#include "model/slot.h"

struct core;

struct image_requirements {
    struct slots min, max; /* in max, what is missing is unlimited */
};

/* A list of images as in msg_image_list. Labels that are no amounts and slots that
 * nobody knows are passed over.
 */
void image_requirements_take(struct core *core, const char *images);
/* Of the image of that name as users write it (NULL = of none); *ret NULL = nothing. -ENOMEM. */
int image_requirements_find(const struct core *core, const char *image,
                            const struct image_requirements **ret);
void image_requirements_free(struct core *core);

#endif
