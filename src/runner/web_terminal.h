/* SPDX-License-Identifier: Apache-2.0 */
/* web_terminal.h - the web terminal of a container, "aliquot-runner --terminal PORT"
 *
 * The app "ttyd" (app_own.h): a process of the session's user with one thread, which listens on
 * 127.0.0.1 and has a shell for each WebSocket (web_wire.h). A shell gets SIGHUP when its
 * connection goes, and the connection is closed with the shell's status when that ends. Who reads
 * slowly holds his shell up, and what a shell does not read holds him up.
 */
#ifndef AQ_RUNNER_WEB_TERMINAL_H
#define AQ_RUNNER_WEB_TERMINAL_H

#include <stdint.h>

#include "base/error.h"

#define WEB_SHELLS_MAX 64 /* at a time: half of the connections that the server takes */

/* Until the process is ended; -errno if it could not begin. */
int web_terminal_serve(uint16_t port, struct aq_error *err);

#endif
