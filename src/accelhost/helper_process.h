/* SPDX-License-Identifier: Apache-2.0 */
/* helper_process.h - one process of aliquot-accel: started, sent requests, read, killed */
#ifndef AQ_ACCELHOST_HELPER_PROCESS_H
#define AQ_ACCELHOST_HELPER_PROCESS_H

#include "accelhost/helper.h"

struct helper_process;

/* Called by the loop; each may free what it comes from. */
struct helper_events {
    void (*on_line)(void *data, const char *line, size_t len);
    void (*on_failed)(void *data, const char *why); /* "has crashed: ..."; nothing follows */
};

/* 'conf' is used during the call. Returns a negative error of libuv's if it cannot be started. */
int helper_process_new(const struct helper_conf *conf, const struct helper_events *events,
                       void *data, struct helper_process **ret);
/* Kill it; it is reaped later, by the loop. NULL is fine. */
void helper_process_free(struct helper_process *process);

/* Takes over 'text', a line. */
void helper_process_send(struct helper_process *process, char *text);

#endif
