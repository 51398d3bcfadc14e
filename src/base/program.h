/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - run another program to its end and read what it writes */
#ifndef AQ_BASE_PROGRAM_H
#define AQ_BASE_PROGRAM_H

#include "base/error.h"
#include "base/strbuf.h"

/* Run the file argv[0], standard output appended to 'out' (at most 64 KiB, may
 * be NULL), standard error to the file 'log_path', or to 'out' too if that is
 * NULL. Waits at most 'timeout_msec' (-ETIMEDOUT; it is killed then). -ECHILD
 * if it exits with another status than 0: the text has the last line that was written,
 * and names the log. -ENOENT or -EACCES if it cannot be started. It is
 * killed when we end.
 */
int program_run(char *const *argv, const char *log_path, int timeout_msec, struct strbuf *out,
                struct aq_error *err);

#endif
