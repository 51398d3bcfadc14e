/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - report our state to the service manager (sd_notify(3))
 *
 * "READY=1", "STOPPING=1", "STATUS=text": one datagram to the socket named in
 * NOTIFY_SOCKET (a path, or '@' and an abstract name). Without that variable
 * nothing happens; nobody may depend on its arrival, so nothing is returned.
 */
#ifndef AQ_BASE_NOTIFY_H
#define AQ_BASE_NOTIFY_H

#include <stdint.h>

void notify_send(const char *state);

/* How often "WATCHDOG=1" is wanted of this process: half of $WATCHDOG_USEC;
 * 0 = not at all.
 */
int64_t notify_watchdog_usec(void);

#endif
