/* SPDX-License-Identifier: Apache-2.0 */
/* play.h - a simulated cluster under load and faults, whose invariants are checked
 *
 * The real core of a manager and real agents run on simulated hosts (simuv/simuv.h). Sessions are
 * requested, renamed and ended at random, hosts crash and networks fail at random, and everything
 * that was acknowledged is compared with what became of it. One seed is one run: what it does and
 * reports depends on the options alone.
 *
 * Invariants, by the names that reports use:
 *   ledger    the manager's own audits find nothing; programs hold no more than their agent has
 *   once      no two programs of a kernel run at a time, none runs twice in one attempt, and a
 *             request that is sent again makes nothing again
 *   durable   what was acknowledged is there after every crash; an end is final, and has a cause
 *   leak      no program, kernel or device is held for a session that has ended
 *   progress  every request is answered, every status with a deadline is left, and sessions end
 *             when the faults have ended
 *
 * One run in a process. All functions of play_*.h are for the simulation's thread, outside of all
 * hosts, unless their comment says otherwise.
 */
#ifndef AQ_SIM_PLAY_PLAY_H
#define AQ_SIM_PLAY_PLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "sim/play/play_check.h"
#include "sim/play/play_cluster.h"
#include "sim/play/play_ends.h"
#include "sim/play/play_faults.h"
#include "sim/play/play_programs.h"
#include "sim/play/play_report.h"
#include "sim/play/play_sessions.h"
#include "sim/play/play_workload.h"

#define PLAY_AGENTS_MAX 5000
#define PLAY_HOURS_MAX 1000

struct play_options {
    uint64_t seed;
    int agents, gpus;         /* gpus: of each agent */
    double hours;             /* simulated, under load and faults */
    double sessions_per_hour; /* requested, on average */
    unsigned faults;          /* bits 1u << PLAY_FAULT_... */
    double fault_scale;       /* 1 = the rates of play_faults.c */
    bool trace;               /* write what happens to standard error */
};

struct play {
    struct play_options options;
    struct play_cluster cluster;
    struct play_sessions sessions;
    struct play_workload workload;
    struct play_faults faults;
    struct play_programs programs;
    struct play_check check;
    struct play_report report;
};

/* End the run soon, without a report. For handlers of signals. */
void play_interrupt(void);

/* True: no invariant was broken. The report, the same for the same options, is appended to 'out'. */
bool play_run(const struct play_options *options, bool json, struct strbuf *out);

#endif
