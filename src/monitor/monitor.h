/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - one program from its start to its exit record
 *
 * One thread, one epoll. Follows protocol.h.
 */
#ifndef AQ_MONITOR_MONITOR_H
#define AQ_MONITOR_MONITOR_H

#include "base/error.h"

/* Take the directory (also as working directory), run its program and return
 * when exit.json is there. 'client' is a connected socket of the agent, as
 * if it had come by monitor.sock, or -1; 'program' is the file that the first arg
 * names, opened before, or -1. Both are taken. 0; MONITOR_EXIT_BUSY if another monitor has the
 * directory; -errno if there can be no exit record (the disk is full, the directory
 * is gone), with 'err'.
 */
int monitor_run(const char *directory, int client, int program, struct aq_error *err);

#endif
