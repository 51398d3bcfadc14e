/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - report our state to the service manager (sd_notify(3))
 *
 * "READY=1", "STOPPING=1", "STATUS=text": one datagram to the socket named in
 * NOTIFY_SOCKET (a path, or '@' and an abstract name). Without that variable
 * nothing happens; nobody may depend on its arrival, so nothing is returned.
 */
#ifndef AQ_BASE_NOTIFY_H
#define AQ_BASE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

void notify_send(const char *state);

/* How often "WATCHDOG=1" is wanted of this process: half of $WATCHDOG_USEC;
 * 0 = not at all.
 */
int64_t notify_watchdog_usec(void);

/* Before work that occupies the loop for longer than the watchdog waits, as loading a database: give
 * it NOTIFY_LONG_USEC; and after it (false): the time that it had at the start of the process.
 */
#define NOTIFY_LONG_USEC (INT64_C(600) * 1000000)
void notify_extend_watchdog(bool is_long);

#endif
