/* SPDX-License-Identifier: Apache-2.0 */
/* remote_shell.h - "aliquot-rsh HOST COMMAND...": a command in another kernel of the session
 *
 * For launchers such as mpirun in images without a client of SSH. It takes the place of ssh, and
 * of its options those that launchers give: -n, -q, -T and -x, which change nothing here.
 */
#ifndef AQ_RUNNER_REMOTE_SHELL_H
#define AQ_RUNNER_REMOTE_SHELL_H

#include "base/error.h"

#define REMOTE_SHELL_PORTS "/home/config/ssh/ports" /* "sub1 2200", a line for each kernel */

/* The port of the SSH server of that kernel, by the text of the file; 0 = the session lacks it. */
unsigned remote_shell_find_port(const char *ports, const char *host);

/* Becomes the node's client of SSH, and returns only if it cannot. -EINVAL for other options, for a
 * host that is not of the session, and without a command.
 */
int remote_shell_run(int argc, char **argv, struct aq_error *err);

#endif
