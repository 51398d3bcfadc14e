/* SPDX-License-Identifier: Apache-2.0 */
/* log_quota.h - how many logs of one agent a user reads at a time
 *
 * Each is a connection of the agent's own, with what waits in it, and takes its turn there
 * with all others (agent/kernel/log_turns.h). Belongs to the loop's thread.
 */
#ifndef AQ_MANAGER_STREAM_LOG_QUOTA_H
#define AQ_MANAGER_STREAM_LOG_QUOTA_H

#include "base/error.h"
#include "base/uuid.h"

#define LOG_QUOTA_MAX 100

struct log_quota;
struct log_quota_readers; /* of one user and agent */

struct log_quota *log_quota_new(void);
void log_quota_free(struct log_quota *quota); /* after the last reader */

/* One more log of this agent is read. -EAGAIN (rate-limit-exceeded) if that are too many.
 */
int log_quota_enter(struct log_quota *quota, const struct uuid *user_id, const char *agent_id,
                    struct log_quota_readers **ret, struct aq_error *err);
/* It is read no more. NULL is fine. */
void log_quota_leave(struct log_quota_readers *readers);

#endif
