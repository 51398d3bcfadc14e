/* notify.h - the notification socket of a service manager (sd_notify(3)) */
#ifndef AQ_MANAGER_NOTIFY_H
#define AQ_MANAGER_NOTIFY_H

#include <stdint.h>

/* Send e.g. "READY=1" to $NOTIFY_SOCKET; nothing happens without one. */
void notify_send(const char *text);

/* How often "WATCHDOG=1" is wanted: half of $WATCHDOG_USEC, 0 = not. */
int64_t notify_watchdog_usec(void);

#endif
