/* SPDX-License-Identifier: Apache-2.0 */
/* port.h - may a program listen on this port of the loopback? */
#ifndef AQ_UP_PORT_H
#define AQ_UP_PORT_H

#include <stdint.h>

#include "base/error.h"

/* Wait until nobody listens on 'port' of 127.0.0.1, at most five seconds: so long a program may
 * still be ending that had it before. -EADDRINUSE afterwards; 'option' is what chooses another.
 */
int port_wait(uint16_t port, const char *option, struct aq_error *err);

#endif
