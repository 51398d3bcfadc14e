/* SPDX-License-Identifier: Apache-2.0 */
/* redis.h - copies of what the manager has in memory, in a Redis server
 *
 * For tools that read Backend.AI's Redis, under its keys and in its encodings: live statistics, last
 * heartbeats of agents, windows of the rate limit, events. For the next manager: windows and accepted
 * signatures. All of it may be lost; no request waits for Redis.
 */
#ifndef AQ_MANAGER_REDIS_REDIS_H
#define AQ_MANAGER_REDIS_REDIS_H

#include "manager/call/api.h"
#include "redis/redis_client.h"

/* Load what the last manager left, which takes a second at most, and begin to write. Nothing without
 * settings->uri. 'settings' are borrowed until the API is freed; call this before requests come.
 * -EINVAL with the setting as field; -errno of files. A server that is away is no error.
 */
int redis_open(struct api *api, const struct redis_settings *settings, struct aq_error *err);

/* Wall clock: since when Redis does not take what is written; 0 = it does, or none is configured. */
int64_t redis_get_away_usec(const struct api *api);

void redis_write_metrics(const struct api *api, struct strbuf *out);

#endif
