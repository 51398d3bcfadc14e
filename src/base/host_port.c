/* SPDX-License-Identifier: Apache-2.0 */
/* host_port.c - addresses as people and URLs write them */
#include "base/host_port.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *host_port_write(const char *host, unsigned port, char ret[HOST_PORT_MAX])
{
    bool is_bare = strchr(host, ':') && host[0] != '[';

    (void)snprintf(ret, HOST_PORT_MAX, is_bare ? "[%.255s]:%u" : "%.257s:%u", host, port);
    return ret;
}
