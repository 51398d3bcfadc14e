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
#include "monitor/protocol.h"

/* For sh -c: runs its argument "$1" by a shell, with an empty input, and ends if that fails; then
 * tells the monitor (MONITOR_BOOTSTRAP_FD) that the script has succeeded.
 */
#define BOOTSTRAP_FAILED_LINE "aliquot: the bootstrap script failed with exit status "
#define BOOTSTRAP_COMMAND                                                    \
    "/bin/sh -c \"$1\" </dev/null " BOOTSTRAP_FD_TEXT ">&- || { set -- $?; " \
    "echo \"" BOOTSTRAP_FAILED_LINE "$1\" >&2; exit $1; }\n"                 \
    "echo >&" BOOTSTRAP_FD_TEXT "; exec " BOOTSTRAP_FD_TEXT ">&-; "

/* Does the log in this run directory say that the script failed, with this exit status? Appends
 * that and the script's last lines, for people. False also if the log cannot be read.
 */
bool bootstrap_has_failed(const char *run_directory, int exit_code, struct strbuf *why);

/* Append, for people, that the script took longer than it may, and its last lines. */
void bootstrap_describe_timeout(const char *run_directory, int64_t limit_usec, struct strbuf *why);

#endif
