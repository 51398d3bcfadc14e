/* SPDX-License-Identifier: Apache-2.0 */
/* play_runtime.h - programs of kernels that are events of the simulation
 *
 * What a program does, its command line says with words anywhere in it: "run=SECONDS" (forever
 * without it), "code=N" (exit status), "start=MSEC" (until it runs), "stubborn" (ignores SIGTERM),
 * "oom" (killed for memory at its end), "fails" (never starts). Programs belong to their machine
 * and run on when the agent has crashed.
 */
#ifndef AQ_SIM_PLAY_PLAY_RUNTIME_H
#define AQ_SIM_PLAY_PLAY_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/runtime/runtime.h"
#include "alloc/grant.h"
#include "base/uuid.h"
#include "simuv/simuv.h"

struct play_program {
    const char *agent_id;
    struct uuid kernel_id;
    int starts; /* of one attempt */
    bool is_running;
    int64_t started_usec; /* simulated time */
    /* What the agent wrote in the kernel's resource.txt before it ordered the start: each device
     * and its amount, 10^-6 cores, cards or shares, bytes of memory. Also after the program's end.
     */
    struct alloc_grant holds;
    const char *reason; /* of its end, as in monitor/protocol.h; NULL = none, or with its machine */
    int code;           /* the same: exit status */
};

/* Each attempt of a kernel that was ordered to start, in no order; valid during the call. */
void play_each_program(void (*fn)(void *data, const struct play_program *p), void *data);

/* Called when a program begins to run, and when one that was ordered has ended; it may have begun to
 * run (starts) or not. Also from code of hosts. One function for the process.
 */
void play_on_program(void (*fn)(void *data, const struct play_program *p), void *data);

/* The programs of one machine, for as long as the process. 'agent_id' is borrowed. */
struct play_machine;
struct play_machine *play_machine_new(simuv_host host, const char *agent_id);

/* For a new process of the agent; runtime_free(), or play_machine_abandon() after its crash. */
struct runtime *play_runtime_new(struct play_machine *machine, uv_loop_t *loop);

/* The agent has crashed: nothing is told to its runtime any more. */
void play_machine_abandon(struct play_machine *machine);
/* The machine has crashed: no program is left. Those that had not ended have no exit record, and
 * the record of their start was not on the disk yet.
 */
void play_machine_crash(struct play_machine *machine);

#endif
