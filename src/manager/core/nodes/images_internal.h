/* SPDX-License-Identifier: Apache-2.0 */
/* images_internal.h - images on agents; inside core */
#ifndef AQ_MANAGER_CORE_NODES_IMAGES_INTERNAL_H
#define AQ_MANAGER_CORE_NODES_IMAGES_INTERNAL_H

struct agent_entry;
struct core;
struct msg_image_list;
struct msg_image_status;

/* How far a job or a session's pull has come. */
void images_take_status(struct core *core, const struct agent_entry *a,
                        const struct msg_image_status *msg);

/* The images that an agent has. */
void images_take_list(struct core *core, struct agent_entry *a, const struct msg_image_list *msg);

/* Its connection has ended. */
void images_fail_jobs(struct core *core, const struct agent_entry *a);

/* All jobs, at the end. */
void images_free_jobs(struct core *core);

#endif
