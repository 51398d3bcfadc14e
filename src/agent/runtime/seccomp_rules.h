/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_rules.h - rules about system calls, with those that no program of a container gets
 *
 * In a user namespace of its own a program has all capabilities, and with them reaches parts of
 * the Linux kernel that are else root's: mounts, nftables. AF_VSOCK leads to the hypervisor, past
 * the container's network. So no rule of a profile lets these pass.
 */
#ifndef AQ_AGENT_RUNTIME_SECCOMP_RULES_H
#define AQ_AGENT_RUNTIME_SECCOMP_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/jsonw.h"

/* Write a profile's rules ("syscalls" of an OCI runtime's "linux.seccomp") with those that refuse
 * sockets of AF_VSOCK and, unless 'may_nest', namespaces; none of them lets these pass. Nothing
 * that the profile refuses is allowed by that.
 */
void seccomp_rules_write(struct jsonw *w, const json_t *rules, bool may_nest);

#endif
