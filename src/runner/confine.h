/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - system calls that no program of a container gets, whatever else is filtered
 *
 * In a user namespace of its own a program has all capabilities, and with them reaches parts of
 * the Linux kernel that are else root's: mounts, nftables. AF_VSOCK leads to the hypervisor, past
 * the container's network.
 */
#ifndef AQ_RUNNER_CONFINE_H
#define AQ_RUNNER_CONFINE_H

#include <stdbool.h>

#include "base/error.h"

/* Refuse sockets of AF_VSOCK and, unless 'may_nest', namespaces: to this process and all that
 * come from it, forever. There must be only one thread, with PR_SET_NO_NEW_PRIVS. -errno.
 */
int confine(bool may_nest, struct aq_error *err);

#endif
