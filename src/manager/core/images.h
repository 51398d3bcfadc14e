/* SPDX-License-Identifier: Apache-2.0 */
/* images.h - images on agents; part of core.h, whose rules hold here
 *
 * Nothing of this is durable: agents say which images they have, and a job
 * lives as long as somebody waits for it.
 */
#ifndef AQ_MANAGER_CORE_IMAGES_H
#define AQ_MANAGER_CORE_IMAGES_H

#include "link/message.h"

struct core;
struct slots;
struct core_image_job;
struct session;
struct strbuf;

/* How far a job has come; "ready" and "failed" are its last states. */
struct core_image_status {
    const char *agent_id;
    const char *image;
    const char *state; /* "resolving", "retrying", "fetching", "unpacking", "ready", "failed" */
    bool is_final;
    int64_t done_bytes, total_bytes, freed_bytes;
    const char *digest;                  /* NULL unless ready */
    const char *error_kind, *error_text; /* NULL unless failed; retrying: text of the last try */
};

struct core_image_progress {
    const char *state; /* static: "resolving", "retrying", "fetching" or "unpacking" */
    int64_t done_bytes, total_bytes;
};

typedef void (*core_image_fn)(void *data, const struct core_image_status *status);

/* Have an agent do something with images; job_id of 'command' is filled in here.
 * 'fn' is called with each state until a final one, which comes also when the
 * agent is lost. -ENOTCONN if it is not connected.
 */
int core_command_image(struct core *core, const char *agent_id, struct msg_image_command *command,
                       core_image_fn fn, void *data, struct core_image_job **ret,
                       struct aq_error *err);

/* No call follows; a pull that nobody else waits for ends. NULL is fine. */
void core_cancel_image(struct core *core, struct core_image_job *job);

/* The first image of the session that an agent is fetching, how far it has come. False: none is. */
bool core_get_pull(const struct session *s, struct core_image_progress *ret);

/* A line for each kernel of the session whose agent fetches its image again, with the last error. */
void core_add_pull_failures(const struct session *s, struct strbuf *text);

/* What an administrator says that containers of the image get, at least and at most; it counts
 * over what the image's labels say, from now on. With nothing in both, only these count.
 * 'image' is canonical.
 */
void core_set_image_limits(struct core *core, const char *image, const struct slots *min,
                           const struct slots *max);

/* What the agent has: JSON as in msg_image_list, "[]" if it has not said so. */
const char *core_get_agent_images(const struct core *core, const char *agent_id);

#endif
