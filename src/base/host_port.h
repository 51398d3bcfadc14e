/* SPDX-License-Identifier: Apache-2.0 */
/* host_port.h - addresses as people and URLs write them */
#ifndef AQ_BASE_HOST_PORT_H
#define AQ_BASE_HOST_PORT_H

#define HOST_PORT_MAX 272 /* bytes: a host of 255, brackets, a port */

/* "HOST:PORT" into 'ret', which is returned. An IPv6 address gets brackets, unless it has them. */
const char *host_port_write(const char *host, unsigned port, char ret[HOST_PORT_MAX]);

#endif
