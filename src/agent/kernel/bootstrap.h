/* SPDX-License-Identifier: Apache-2.0 */
/* bootstrap.h - the script that runs before a kernel's program, and how its failure is known
 *
 * A shell runs the script and then becomes the program, so a failed script
 * ends the kernel as the program itself would. It leaves a last line in the
 * log by which the two are told apart, also by an agent that starts later.
 */
#ifndef AQ_AGENT_KERNEL_BOOTSTRAP_H
#define AQ_AGENT_KERNEL_BOOTSTRAP_H

#include <stdbool.h>

#include "base/strbuf.h"

/* For sh -c: runs its argument "$1" by a shell, and ends if that fails. */
#define BOOTSTRAP_FAILED_LINE "aliquot: the bootstrap script failed with exit status "
#define BOOTSTRAP_COMMAND \
    "/bin/sh -c \"$1\" || { set -- $?; echo \"" BOOTSTRAP_FAILED_LINE "$1\" >&2; exit $1; }\n"

/* Does the log in this run directory say that the script failed, with this exit status? Appends
 * that and the script's last lines, for people. False also if the log cannot be read.
 */
bool bootstrap_has_failed(const char *run_directory, int exit_code, struct strbuf *why);

#endif
