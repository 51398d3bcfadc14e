/* SPDX-License-Identifier: Apache-2.0 */
/* readiness.h - kernels with a probe (kernel_spec.probe_port), and what the manager hears of them
 *
 * A kernel is probed from when its program runs until it ends; each attempt begins anew. That it was
 * ready once is a file 'ready' in the attempt's directory: an agent that starts goes on from there,
 * so that its restart takes no replica of a model service out of use. kernel.health is sent at each
 * change, and for all probed kernels after each welcome.
 */
#ifndef AQ_AGENT_KERNEL_READINESS_H
#define AQ_AGENT_KERNEL_READINESS_H

#include "agent/kernel/kernel.h"

/* Whether the probe of a command can be: -EINVAL with the member as field. */
int readiness_check(const struct kernel_spec *spec, struct aq_error *err);

/* The kernel's program runs: probe it, if its command has a probe. */
void readiness_begin(struct local_kernel *k);
/* It runs no more, or is to end. Nothing if it is not probed. */
void readiness_end(struct local_kernel *k);

/* A manager has said welcome. */
void readiness_report_all(struct agent_daemon *agent);

#endif
