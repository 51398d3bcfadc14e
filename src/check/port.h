/* SPDX-License-Identifier: Apache-2.0 */
/* port.h - can a daemon listen here, and if not, who does? */
#ifndef AQ_CHECK_PORT_H
#define AQ_CHECK_PORT_H

#include <stdint.h>
#include <sys/types.h>

#include "check/check.h"

/* 'owner' ("aliquot-manager") may have the port already. 'option' is what
 * chooses another one.
 */
void port_check(const char *host, uint16_t port, const char *owner, const char *option,
                struct finding *ret);

/* The process that listens at the TCP port, with its command's name; -ENOENT
 * if there is none, or it is another user's and we may not look.
 */
int port_find_owner(uint16_t port, pid_t *ret_pid, char ret_name[32]);

#endif
