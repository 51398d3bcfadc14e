/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - the ports that a kernel publishes on its node
 *
 * What its image names by labels (in the main kernel of a session) and what
 * the session opens beside. Each gets a port of the node (net.h), found again
 * by an agent that takes the network over. Who connects users to them, the
 * proxy, reads service_ports of the kernel.
 */
#ifndef AQ_AGENT_KERNEL_SERVICES_H
#define AQ_AGENT_KERNEL_SERVICES_H

#include "agent/kernel/kernel.h"
#include "model/service_port.h"

/* Can it publish what its command opens? -ENOTSUP (field "preopen_ports") for a
 * process of the node, and where containers have no network.
 */
int services_check(const struct local_kernel *k, struct aq_error *err);

/* All of them. Its image is here. -EINVAL, with the label or "preopen_ports" as field. */
int services_find(const struct local_kernel *k, struct services *ret, struct aq_error *err);

/* Is there an SSH server in it? Its image is here. Published only if the session is
 * interactive: others it serves within theirs.
 */
bool services_have_ssh(const struct local_kernel *k);

/* That it listens on, in the container. */
uint16_t services_ssh_port(const struct local_kernel *k);

/* Can sessions of the type system run here? */
bool services_offer_sftp(const struct agent_daemon *agent);

/* Its image is here, and its network, if it gets one: put down what can be reached, and by which
 * ports of the node, for reports.
 */
void services_note(struct local_kernel *k);

/* Texts in the arena, NULL if there is nothing: the
 * container's label, and what the command opens as "8888,9000".
 */
const char *services_label(const struct local_kernel *k, struct arena *arena);
const char *services_opened(const struct local_kernel *k, struct arena *arena);

#endif
