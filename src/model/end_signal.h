/* SPDX-License-Identifier: Apache-2.0 */
/* end_signal.h - signals that a batch session's program gets before it is ended
 *
 * The syntax is that of sbatch(1): "[B:]SIG[@SECONDS]". Pure.
 */
#ifndef AQ_MODEL_END_SIGNAL_H
#define AQ_MODEL_END_SIGNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct session_spec;

#define END_SIGNAL_BEFORE_DEFAULT_USEC (INT64_C(60) * 1000000)
#define END_SIGNAL_GRACE_DEFAULT_USEC (INT64_C(30) * 1000000) /* with a checkpoint signal */
#define END_SIGNAL_TIME_MAX_USEC (INT64_C(86400) * 1000000)

/* The number of "TERM", "SIGUSR1" or "10". -EINVAL for others, and for SIGKILL and SIGSTOP, which
 * programs cannot handle.
 */
int end_signal_number(const char *text, size_t len);

/* Parse the signal and its time before the limit. NULL gives signal 0. -EINVAL, field "signal". */
int end_signal_parse(const char *text, int *ret_signal, int64_t *ret_before_usec,
                     struct aq_error *err) AQ_UNTRUSTED;

/* Check signal, checkpoint_signal and grace of a session. -EINVAL with the API's field name. */
int end_signal_check(const struct session_spec *spec, struct aq_error *err);

/* Time between the checkpoint signal and SIGTERM; 0 without such a signal. 'max_usec' is the limit
 * of the resource group.
 */
int64_t end_signal_notice_usec(const struct session_spec *spec, int64_t max_usec);

/* Time between SIGTERM and SIGKILL: the session's grace if it has no checkpoint signal, else
 * 'usual_usec'.
 */
int64_t end_signal_grace_usec(const struct session_spec *spec, int64_t max_usec,
                              int64_t usual_usec);

#endif
