/* SPDX-License-Identifier: Apache-2.0 */
/* play_agent.h - a real agent on a simulated host, whose programs are those of play_runtime.h
 *
 * Its state directory is real, below play_manager_scratch(). Functions are called outside of all
 * hosts.
 */
#ifndef AQ_SIM_PLAY_PLAY_AGENT_H
#define AQ_SIM_PLAY_PLAY_AGENT_H

#include <stdint.h>

#include "sim/play/play_manager.h"
#include "simuv/simuv.h"

struct play_agent;

struct play_agent_spec {
    const char *id;
    int cpus;
    int64_t memory;     /* bytes */
    int gpus;           /* cards of which sessions get parts: 1 of "cuda.shares" each, in 0.05 */
    int whole_gpus;     /* further ones, which sessions get whole: "cuda.device" */
    int64_t gpu_memory; /* bytes of each; 0 = 40 GiB */
};

/* Gives it a certificate of the manager's authority, who must be up, and boots it. Ends the process
 * if it cannot start. What is given is borrowed.
 */
struct play_agent *play_agent_new(simuv_host host, const char *ip,
                                  const struct play_agent_spec *spec, struct play_manager *m);
/* The daemon; its programs go on. */
void play_agent_crash(struct play_agent *a, bool is_silent);
/* The programs are gone, too; the agent finds that the machine was restarted. It may have crashed
 * before.
 */
void play_agent_crash_machine(struct play_agent *a);
void play_agent_boot(struct play_agent *a);
/* In order, as by SIGTERM; programs go on. */
void play_agent_stop(struct play_agent *a);

#endif
