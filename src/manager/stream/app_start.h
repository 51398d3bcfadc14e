/* SPDX-License-Identifier: Apache-2.0 */
/* app_start.h - starts an app in a container for a proxy, and finds the port on which it listens
 *
 * The executor of the container starts it unless it runs, and answers when it listens. Loop's thread
 * only.
 */
#ifndef AQ_MANAGER_STREAM_APP_START_H
#define AQ_MANAGER_STREAM_APP_START_H

#include "manager/call/api.h"

/* 'port', or 0 and why. 'want' is as it was asked. */
typedef void app_started_fn(void *data, const char *proxy, const struct msg_app_connect *want,
                            uint16_t port, const struct aq_error *err);

/* One more of 'starts' until 'fn' is called, later and once. -EINVAL for a name or a kernel that
 * does not run, -ENOTCONN if its agent is away.
 */
int app_start(struct list *starts, struct api *api, const char *proxy, const struct kernel *kernel,
              const struct msg_app_connect *want, app_started_fn *fn, void *data,
              struct aq_error *err);

/* Those of this proxy, NULL = all, are not waited for any more; the apps start nevertheless. */
void app_starts_cancel(struct list *starts, const char *proxy);

#endif
