/* SPDX-License-Identifier: Apache-2.0 */
/* play_report.h - what a run did, and the first invariant that it broke */
#ifndef AQ_SIM_PLAY_PLAY_REPORT_H
#define AQ_SIM_PLAY_PLAY_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

struct play;

struct play_report {
    const char *broken; /* name of the invariant; NULL = none */
    int64_t broken_usec;
    struct strbuf text; /* what broke it */
    int64_t requests, sent_again;
    int64_t made, succeeded, failed, ended, cancelled, errors; /* sessions; ended: by their users */
    int64_t programs;                                          /* that were started */
    int64_t manager_crashes, agent_crashes, machine_crashes, partitions, stalls, disk_faults,
        clock_jumps;
    int64_t turns, sweeps, audits; /* times that something was checked */
};

/* An invariant is broken: the run stops. Only the first is kept. May be called from hosts' code. */
void play_break(struct play *play, const char *invariant, const char *fmt, ...) AQ_PRINTF(3, 4);

/* A line to standard error, with the simulated time, if the run is traced. From anywhere. */
void play_trace(const struct play *play, const char *fmt, ...) AQ_PRINTF(2, 3);

/* Append it, with the command that runs it again. */
void play_report_text(const struct play *play, struct strbuf *out);
void play_report_json(const struct play *play, struct strbuf *out);

#endif
