/* helper.h - run a program to its end and read what it prints */
#ifndef AQ_UP_HELPER_H
#define AQ_UP_HELPER_H

#include "base/error.h"
#include "base/strbuf.h"

/* Run argv[0], standard output appended to 'out' (at most 64 KiB), standard
 * error to 'log_path'. Waits at most 'timeout_msec' (-ETIMEDOUT; it is killed
 * then). -ECHILD if it exits with another status than 0.
 */
int helper_run(char *const *argv, const char *log_path, int timeout_msec, struct strbuf *out,
               struct aq_error *err);

#endif
