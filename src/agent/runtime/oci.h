/* SPDX-License-Identifier: Apache-2.0 */
/* oci.h - containers, by an OCI runtime under aliquot-monitor
 *
 * crun or runc, whichever works on this node, is run in the foreground by the
 * monitor, which puts the container's surroundings together and takes them
 * down again (monitor/sandbox.h). Process 1 of the container is
 * aliquot-runner (runner/protocol.h), which starts the program.
 */
#ifndef AQ_AGENT_RUNTIME_OCI_H
#define AQ_AGENT_RUNTIME_OCI_H

#include "agent/runtime/oci_host.h"
#include "agent/runtime/runtime.h"

/* Try the runtimes that the settings name and take the first that works,
 * which a container of the node's own root shows. Waits for it; before the
 * loop runs. -ENOTSUP with what each of them said. 'settings' is borrowed.
 */
int runtime_new_oci(uv_loop_t *loop, const struct settings *settings, const char *monitor_path,
                    const char *runner_path, struct runtime **ret, struct aq_error *err);

/* "crun 1.8.1" */
const char *runtime_oci_version(const struct runtime *rt);
const struct oci_host *runtime_oci_host(const struct runtime *rt);
/* Path of aliquot-monitor. */
const char *runtime_oci_monitor(const struct runtime *rt);

/* End containers of kernels for which is_known() is false, with all that is left of them. */
void runtime_oci_sweep(struct runtime *rt, bool (*is_known)(void *data, const struct uuid *kernel),
                       void *data);

/* ---- between oci.c and probe.c ---- */

struct oci_runtime;

/* Run a container of the node's own root to its end: 0 if it does what it
 * should, else -errno with the reason.
 */
int oci_probe(struct oci_runtime *rt, const struct settings *settings, struct aq_error *err);
/* Write 'program' into spec->directory, and config.json there or, for hooks, where they can read
 * it.
 */
int oci_write(struct oci_runtime *rt, const struct runtime_spec *spec, struct aq_error *err);

#endif
