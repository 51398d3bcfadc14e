/* SPDX-License-Identifier: Apache-2.0 */
/* event_name.h - what clients are told when a session or kernel changes; manager/core/bus.h has
 * their meaning
 */
#ifndef AQ_MODEL_EVENT_NAME_H
#define AQ_MODEL_EVENT_NAME_H

#include "model/session.h"

/* Of coming into this status; NULL where nothing is told. */
const char *session_event_name(enum session_status status);
const char *kernel_event_name(enum kernel_status status);

#define SESSION_EVENT_WAITING "session_waiting" /* its reason to wait is another one */
#define KERNEL_EVENT_RESIZED "kernel_resized"

/* Of having this result; NULL of RESULT_UNDEFINED. */
const char *result_event_name(enum session_result result);

#endif
