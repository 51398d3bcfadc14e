/* SPDX-License-Identifier: Apache-2.0 */
/* end_signal.h - signals that a batch session's program gets before it is ended
 *
 * In the words of sbatch(1): "[B:]SIG[@SECONDS]". Pure.
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

/* "TERM", "SIGUSR1" or "10": its number. -EINVAL for others, and for SIGKILL and SIGSTOP, which no
 * program notices.
 */
int end_signal_number(const char *text, size_t len);

/* What is sent how long before the time limit. NULL: signal 0. -EINVAL, field "signal". */
int end_signal_parse(const char *text, int *ret_signal, int64_t *ret_before_usec,
                     struct aq_error *err) AQ_UNTRUSTED;

/* The bounds of a session's members about its end. -EINVAL with the field as the API calls it. */
int end_signal_check(const struct session_spec *spec, struct aq_error *err);

/* How long a program that is asked to end has from its checkpoint signal to SIGTERM; 0 without
 * one. 'max_usec' is the resource group's.
 */
int64_t end_signal_notice_usec(const struct session_spec *spec, int64_t max_usec);

/* From SIGTERM to SIGKILL: 'usual_usec', or without a checkpoint signal the session's grace. */
int64_t end_signal_grace_usec(const struct session_spec *spec, int64_t max_usec,
                              int64_t usual_usec);

#endif
