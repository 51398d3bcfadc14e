/* runner_link.h - the monitor's side of aliquot-runner, process 1 of a container
 *
 * The listening socket lies in the kernel's folder, "runner.sock", and goes
 * into the container as descriptor RUNNER_SOCKET_FD, a memory file for its report
 * as RUNNER_REPORT_FD (runner/protocol.h). The agent connects to the socket by
 * itself; the monitor does to hear when the program runs.
 */
#ifndef AQ_MONITOR_RUNNER_LINK_H
#define AQ_MONITOR_RUNNER_LINK_H

#include <stdbool.h>

#include "base/error.h"
#include "runner/protocol.h"

#define RUNNER_SOCKET_FD 3
#define RUNNER_REPORT_FD 4

struct runner_link {
    int listener, report, connection; /* -1 = none */
};

/* Make socket and report in the working directory. */
int runner_link_open(struct runner_link *link, struct aq_error *err);

/* In the child: put the descriptors where the runner is told to find them; 0 or -errno. */
int runner_link_pass(const struct runner_link *link);

/* The child has its copies: connect, as soon as it listens. */
void runner_link_connect(struct runner_link *link);

/* What the connection says: 1 and the program runs, 0 not yet, or -errno, it has ended. */
int runner_link_receive(struct runner_link *link, struct runner_hello *ret);

/* False if the runner was killed before it could write one. */
bool runner_link_read_report(const struct runner_link *link, struct runner_report *ret);

void runner_link_close(struct runner_link *link);

#endif
