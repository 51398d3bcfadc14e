/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks.h - tells a session's callback_url what happens to it
 *
 * POST of {"type", "event", "session_id", "when"}, as Backend.AI's managers send it. URLs are
 * strangers' words: only public addresses are connected to, and networks that the settings
 * allow. A message is tried three times at most and kept in memory; of one user one is under
 * way and few wait. What is beyond, and what waits when the manager ends, is lost.
 * Loop's thread.
 */
#ifndef AQ_MANAGER_REQUEST_CALLBACKS_H
#define AQ_MANAGER_REQUEST_CALLBACKS_H

#include <uv.h>

#include "base/error.h"
#include "http/network.h"
#include "manager/core/core.h"

struct callbacks;

#define CALLBACK_URL_MAX 1024

/* Begins at once. NULL = no memory. */
struct callbacks *callbacks_new(struct core *core);
/* Further networks that may be reached; borrowed. */
void callbacks_allow(struct callbacks *callbacks, const struct network *networks, size_t count);
/* Drops what waits; before the core's end. */
void callbacks_free(struct callbacks *callbacks);

/* Could messages be sent there? -EINVAL, field "callback_url": it is no URL of http or https,
 * or has an address that may not be reached. A name is looked up when there is something to say.
 */
int callbacks_check_url(const struct callbacks *callbacks, const char *url, struct aq_error *err);

#endif
