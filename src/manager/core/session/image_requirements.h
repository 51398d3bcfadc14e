/* SPDX-License-Identifier: Apache-2.0 */
/* image_requirements.h - what images want of the containers that run them
 *
 * As their labels say (ai.backend.resource.min.SLOT, .max.SLOT, .accelerators, .role), in
 * the lists that agents send; what was said last counts. What administrators set counts over
 * that. An image that no agent has yet, and of which nothing is set, wants nothing.
 */
#ifndef AQ_MANAGER_CORE_IMAGE_REQUIREMENTS_H
#define AQ_MANAGER_CORE_IMAGE_REQUIREMENTS_H

#include "model/slot.h"

#define IMAGE_ROLE "ai.backend.role"

struct core;

struct image_requirements {
    struct slots min, max; /* in max, what is missing is unlimited */
    char *accelerators;    /* that it is made for, as in its label; NULL = any */
    bool is_system;        /* its role is SYSTEM: for sessions of that type */
};

/* A list of images as in msg_image_list. Labels that are no amounts and slots that
 * nobody knows are passed over.
 */
void image_requirements_take(struct core *core, const char *images);
/* Of the image of that name as users write it (NULL = of none); NULL = nothing. */
const struct image_requirements *image_requirements_find(const struct core *core,
                                                         const char *image);
/* May a container of it have this slot? -EINVAL names the slot. */
int image_requirements_check_slot(const struct image_requirements *needs, const char *slot,
                                  struct aq_error *err);
void image_requirements_free(struct core *core);

#endif
