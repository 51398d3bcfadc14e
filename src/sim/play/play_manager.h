/* SPDX-License-Identifier: Apache-2.0 */
/* play_manager.h - the real core of a manager on a simulated host
 *
 * Its database is on the simulated disk; its keys are files of a directory of its own below
 * /dev/shm, or TMPDIR. When it loses its database it crashes and boots again, as under systemd.
 * Functions are called outside of all hosts.
 */
#ifndef AQ_SIM_PLAY_PLAY_MANAGER_H
#define AQ_SIM_PLAY_PLAY_MANAGER_H

#include <stdint.h>

#include "base/clock.h"
#include "simuv/simuv.h"

/* How often agents and managers tell of themselves: seldom, because that is most of what a quiet
 * cluster does.
 */
#define PLAY_HEARTBEAT_USEC (30 * USEC_PER_SEC)
#define PLAY_PING_USEC (30 * USEC_PER_SEC)
#define PLAY_DEAD_USEC (90 * USEC_PER_SEC) /* silence that ends a connection, or loses an agent */

struct core;
struct play_manager;

/* Boots it. A first start that fails ends the process. 'ip' is borrowed. */
struct play_manager *play_manager_new(simuv_host host, const char *ip, uint16_t link_port);

struct core *play_manager_core(struct play_manager *m); /* NULL while it is down */

/* How often it was booted: another number is another process. */
uint32_t play_manager_boots(const struct play_manager *m);

/* The disk keeps what was synced; simuv_crash() says what 'is_silent' means. It may have ended. */
void play_manager_crash(struct play_manager *m, bool is_silent);
/* play_manager_core() is NULL afterwards if it could not, for a fault of the disk. */
void play_manager_boot(struct play_manager *m);
void play_manager_stop(struct play_manager *m); /* in order, as by SIGTERM */

/* Called, outside of all hosts, when its process has ended for another reason than the functions
 * above: its core asked for it, or could not start. 'why' is borrowed. It is a crash of the process;
 * unless play_manager_crash() or play_manager_boot() are called before, it boots again after some
 * seconds.
 */
typedef void (*play_manager_ended_fn)(void *data, const char *why);
void play_manager_on_ended(struct play_manager *m, play_manager_ended_fn fn, void *data);

/* Real files of the simulation are here; borrowed. */
const char *play_manager_scratch(const struct play_manager *m);
/* "10.0.0.1:8082", for agents; borrowed. */
const char *play_manager_address(const struct play_manager *m);

/* Stop it if it runs, and remove the real files, of agents too. */
void play_manager_free(struct play_manager *m);

#endif
