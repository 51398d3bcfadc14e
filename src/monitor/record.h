/* record.h - what a folder remembers: 'started' and 'exit.json' */
#ifndef AQ_MONITOR_RECORD_H
#define AQ_MONITOR_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Let 'program' become 'started'. -EEXIST if that is there already. */
int record_started(int folder, struct aq_error *err);

/* When 'started' got its name, in wall-clock microseconds; 0 if it is not there. */
int64_t record_get_started(int folder);

bool record_has_exit(int folder);

struct exit_record {
    const char *kernel_id; /* whose record this is, or NULL */
    const char *reason; /* of protocol.h */
    const char *text;   /* for people; "" = nothing to add */
    bool has_code;
    int code;           /* 128+n for signal n */
    int signal;         /* 0 = none */
    int64_t memory_peak_bytes; /* of its cgroup; -1 = not known */
};

/* Write exit.json, with the resources that all children have used. It outlives
 * every process; a power failure soon after reads as monitor-lost.
 */
int record_exit(int folder, const struct exit_record *record, struct aq_error *err);

#endif
