/* SPDX-License-Identifier: Apache-2.0 */
/* run_record.h - the files 'started' and 'exit.json' of a run directory */
#ifndef AQ_MONITOR_RUN_RECORD_H
#define AQ_MONITOR_RUN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Let 'program' become 'started'. -EEXIST if that is there already. */
int run_record_mark_started(int directory, struct aq_error *err);

/* Take the room that exit.json will need, so that a full disk does not lose it; best effort. */
void run_record_reserve_exit(int directory);

/* When 'started' got its name, in wall-clock microseconds; 0 if it is not there. */
int64_t run_record_get_started(int directory);

bool run_record_has_exit(int directory);

struct exit_record {
    const char *kernel_id; /* whose record this is, or NULL */
    const char *reason;    /* of protocol.h */
    const char *text;      /* for users; "" = nothing to add */
    bool has_code;
    int code;                  /* 128+n for signal n */
    int signal;                /* 0 = none */
    int64_t memory_peak_bytes; /* of its cgroup; -1 = not known */
    bool was_short_of_memory;  /* a process was killed for want of it; "text" says so */
    const char *outputs;       /* JSON of the values it has handed on; NULL = none */
};

/* Write exit.json, with the resources that all children have used. It outlives
 * every process; a power failure soon after reads as monitor-lost.
 */
int run_record_write_exit(int directory, const struct exit_record *record, struct aq_error *err);

#endif
