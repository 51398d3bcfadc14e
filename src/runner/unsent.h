/* SPDX-License-Identifier: Apache-2.0 */
/* unsent.h - what a program sent and closed before it ended, and nobody has received yet
 *
 * The container's network ends soon after its process 1, and takes with it what Linux would have
 * sent, or sent again, on its own.
 */
#ifndef AQ_RUNNER_UNSENT_H
#define AQ_RUNNER_UNSENT_H

#include <stddef.h>
#include <stdint.h>

/* Connections in a text of /proc/net/tcp that are closed on our side while the other side, which is
 * not in this container, has not acknowledged all.
 */
size_t unsent_count(const char *text);

/* Wait until there are none, at most so long; not at all if there are none now. */
void unsent_wait(int64_t max_usec);

#endif
