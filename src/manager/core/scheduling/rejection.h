/* SPDX-License-Identifier: Apache-2.0 */
/* rejection.h - what an agent said when it could not start a kernel */
#ifndef AQ_MANAGER_CORE_SCHEDULING_REJECTION_H
#define AQ_MANAGER_CORE_SCHEDULING_REJECTION_H

#include <stdint.h>

#include "base/cleanup.h"

struct msg_kernel_status;
struct strbuf;

/* The words of an agent (NULL = the manager) that could not start a kernel, as JSON for
 * status_data; the caller frees it. */
char *rejection_json(const char *agent_id, const struct msg_kernel_status *m);

/* A sentence of an agent on a kernel's end, as JSON for status_data, like that. */
char *rejection_remark_json(const char *text);

/* Add what an agent said, if 'status_data' holds such, to the scheduler's
 * explanation. 'text', 'json' may be NULL.
 */
void rejection_append(const char *status_data, struct strbuf *text, struct strbuf *json);

/* 'status_data' of a session that is tried again after 'failed' failures: the last of these; the
 * caller frees it.
 */
char *rejection_keep(const char *status_data, uint32_t failed);

#endif
