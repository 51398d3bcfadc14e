/* SPDX-License-Identifier: Apache-2.0 */
/* runner_link.h - the monitor's side of aliquot-runner, process 1 of a container
 *
 * The listening socket lies in the kernel's directory, "runner.sock", and goes
 * into the container as descriptor RUNNER_SOCKET_FD, a memory file for its report
 * as RUNNER_REPORT_FD (runner/protocol.h). The agent connects to the socket by
 * itself; the monitor does to hear when the program runs. The OCI runtime, which
 * starts the runner, gets one descriptor more, RUNTIME_LOG_FD: a memory file to
 * write down why it could not.
 *
 * Any program that is process 1 has these descriptors. Only when it has said HELLO, and runs the runner's
 * file, does the agent hear that there is a container to talk to. Of one that ended at once the
 * agent hears that it ran, and does not talk to who is left.
 */
#ifndef AQ_MONITOR_RUNNER_LINK_H
#define AQ_MONITOR_RUNNER_LINK_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/values_file.h"
#include "runner/protocol.h"

#define RUNNER_SOCKET_FD 3
#define RUNNER_REPORT_FD 4
#define RUNTIME_LOG_FD 5

struct runner_link {
    int listener, report, log, connection; /* -1 = none */
    const char *file; /* what it is to run, borrowed; NULL = any (an agent of an earlier release) */
    struct stat before; /* of that file */
    int distrust;       /* EPERM: another program was process 1; or why that is not known; else 0 */
    bool is_over;       /* who said HELLO had ended before it was looked at */
};

/* Make the socket, in the working directory, and the memory files; 'file' is on the node. */
int runner_link_open(struct runner_link *link, const char *file, struct aq_error *err);

/* In the child: put the descriptors where the runner is told to find them; 0 or -errno. */
int runner_link_pass(const struct runner_link *link);

/* The child has its copies: connect, as soon as it listens. */
void runner_link_connect(struct runner_link *link);

/* What the connection says: 1 and the program runs, 0 not yet, or -errno, it has ended, or
 * the sender is not trusted.
 */
int runner_link_receive(struct runner_link *link, struct runner_hello *ret);

/* False if the runner was killed before it could write one. */
bool runner_link_read_report(const struct runner_link *link, struct runner_report *ret);

/* The bytes of the program's file of values that the report announces, at most
 * VALUES_FILE_READ_MAX: how many, or -errno, -EPROTO if they are not there.
 */
int runner_link_read_output(const struct runner_link *link, const struct runner_report *report,
                            char bytes[VALUES_FILE_READ_MAX]);

/* Append the first 'max' bytes of what the runtime wrote to 'out'. */
void runner_link_read_log(const struct runner_link *link, size_t max, struct strbuf *out);

void runner_link_close(struct runner_link *link);

#endif
