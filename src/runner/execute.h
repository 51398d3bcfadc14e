/* SPDX-License-Identifier: Apache-2.0 */
/* execute.h - further commands of a container that pass bytes: "aliquot-runner --execute" to its
 * executor (execution.h), "aliquot-runner --connect PORT [--half-close]" to a port that it
 * listens on, "aliquot-runner --app [--half-close]" to an app, which is started if need
 * be
 */
#ifndef AQ_RUNNER_EXECUTE_H
#define AQ_RUNNER_EXECUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define EXECUTE_EXIT_REFUSED 69 /* of "--connect": nobody listens there */

/* Pass bytes between standard input and output and the executor of this user until one of them
 * ends; start it if there is none. 0, or -errno.
 */
int execute_pass_bytes(struct aq_error *err);

/* The same to a TCP port of 127.0.0.1, as the container sees it. With 'half_close' until both
 * have ended: the end of what the port sends is the end of standard output. -ECONNREFUSED and
 * others of connect(2).
 */
int execute_pass_to_port(uint16_t port, bool half_close, struct aq_error *err);

/* Pass a question about an app from standard input to the executor (execution.h) and its answer to
 * standard output; if that has a port, execute_pass_to_port() from then on.
 */
int execute_pass_to_app(bool half_close, struct aq_error *err);

#endif
