/* SPDX-License-Identifier: Apache-2.0 */
/* app_processes.h - what /proc says of apps: their processes, and the ports that are listened on
 *
 * All processes of an app have its name in the variable APP_MARK, also those that left its
 * session or were handed to PID 1.
 */
#ifndef AQ_RUNNER_APP_PROCESSES_H
#define AQ_RUNNER_APP_PROCESSES_H

#include <stddef.h>
#include <stdint.h>

/* Send the signal (0 = none) to all processes of the app 'name', NULL = of any app; how many. */
size_t app_processes_signal(const char *name, int signum);

/* A bit for each port. */
struct app_ports {
    uint8_t bits[8192];
};

/* Those that a connection to 127.0.0.1 reaches. Asking takes nothing from who listens. */
void app_ports_read(struct app_ports *ret);

static inline int app_ports_has(const struct app_ports *ports, uint16_t port)
{
    return ports->bits[port / 8] >> port % 8 & 1;
}

#endif
