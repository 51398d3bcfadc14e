/* SPDX-License-Identifier: Apache-2.0 */
/* wireguard_go.h - the daemon wireguard-go: WireGuard where the Linux kernel has none
 *
 * It outlives the agent, as connections of kernels go through it; who listens on its socket is
 * found by that, so nothing of it is written down. Blocking, for worker threads, one call at a time.
 */
#ifndef AQ_AGENT_NET_WIREGUARD_GO_H
#define AQ_AGENT_NET_WIREGUARD_GO_H

#include <stdbool.h>

#include "base/error.h"

/* 0 if it could be started here; else the error says what is missing. */
int wireguard_go_check(struct aq_error *err);

/* Start it with a device 'name' in this thread's network; it writes to 'directory'/log. Returns
 * when it can be configured, after some milliseconds.
 */
int wireguard_go_start(const char *name, const char *directory, struct aq_error *err);

bool wireguard_go_is_alive(const char *name);

/* Empty its log if that has become large: it may write a line for each packet that is not sent. */
void wireguard_go_trim_log(const char *directory);

/* End it, and wait for that. Nothing happens if it does not run. */
void wireguard_go_stop(const char *name);

#endif
