/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h - what the agents of one machine have claimed for themselves
 *
 * Each agent keeps a file in RUN/claims/ that names the cores, the memory and
 * the devices that it offers or that its kernels hold; a machine's restart
 * clears them. An agent that wants what another one has is rejected. A file is
 * locked as long as its agent runs; that of an agent that is gone counts as
 * long as there are kernels in its state directory.
 */
#ifndef AQ_AGENT_RESOURCES_CLAIMS_H
#define AQ_AGENT_RESOURCES_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct claims;

struct claim_device {
    const char *slot_name, *id;
    int64_t amount; /* that this agent has */
    int64_t whole;  /* that there is of the device */
};

struct claim {
    bool is_shared; /* others may have the same, if they are shared, too */
    const int *cores;
    size_t core_count;
    int64_t memory_bytes;  /* of the machine's */
    int64_t machine_bytes; /* all that agents may have together */
    const struct claim_device *devices;
    size_t device_count;
};

/* 'id' names the agent in messages, 'state' is its state directory. Both are
 * copied. A directory that cannot be made (another user's) is no error: then
 * nothing is checked and claims_get_note() says so.
 */
int claims_new(const char *run_dir, const char *id, const char *state, struct claims **ret,
               struct aq_error *err);
/* Give the claim up, unless there are kernels that run on. NULL is fine. */
void claims_free(struct claims *claims);

/* "" or why others are not looked at. */
const char *claims_get_note(const struct claims *claims);

/* Claim this instead of what was claimed before. With 'add' the former claim
 * of this agent is kept beside it, for kernels of which nothing is known yet.
 * -EBUSY with who has it, as what, and what to do; nothing has changed then.
 */
int claims_set(struct claims *claims, const struct claim *claim, bool add, struct aq_error *err);

#endif
