/* SPDX-License-Identifier: Apache-2.0 */
/* simuv.h - many machines in one process, whose time, network and chance come from a seed
 *
 * A program that links this library has its libuv and the C library's clocks, threads and random
 * numbers replaced, from simuv_begin() on. Unchanged code then runs on simulated machines
 * ("hosts"). Time stands still while code runs, and passes between events.
 *
 * Loops that are made on the simulation's thread are run by simuv_run_until(); uv_run() on one of
 * them runs this loop and all threads only. Threads are real, but one runs at a time: until it
 * waits for a lock, a condition, another thread or time. Connections are TCP over IPv4. Child
 * processes, descriptors of the real system and signals are left out: uv_spawn() and what reads
 * descriptors give UV_ENOSYS, signals never come. So does statvfs(), by errno: files of hosts are
 * the real machine's, but not the room on its disks.
 *
 * Two processes of one program with the same seed do the same, if nothing depends on addresses in
 * memory, real files' times or the environment. All functions here are for the thread that called
 * simuv_begin(), outside of the hosts' code unless their comment says otherwise.
 */
#ifndef AQ_SIMUV_SIMUV_H
#define AQ_SIMUV_SIMUV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef uint32_t simuv_host; /* a machine; 0 = the simulation itself */

/* Once in a process, before any other call and before any loop. */
void simuv_begin(uint64_t seed);

/* No event runs any more. Threads of hosts stay where they are until the process ends. */
void simuv_end(void);

/* The seed's numbers for faults and load; nothing else takes from this stream. */
uint64_t simuv_random(void);
uint64_t simuv_random_below(uint64_t n); /* in [0, n); n > 0 */
bool simuv_chance(double probability);   /* 0 never, 1 always */

/* The simulated monotonic time in microseconds; 1 h at the beginning. Code of hosts may ask, too. */
int64_t simuv_now_usec(void);

/* The time of the real machine, to measure with; nothing simulated may depend on it. */
int64_t simuv_real_usec(void);

/* A host with this IPv4 address, which no other has. */
simuv_host simuv_add_host(const char *ip);

/* What runs from here to the matching leave belongs to this host: loops, sockets and threads that
 * it makes. Loops and threads enter their own host by themselves. Calls may be nested.
 */
void simuv_enter(simuv_host host);
void simuv_leave(void);

/* The host whose code runs now. Code of hosts may ask, too. */
simuv_host simuv_current_host(void);

/* The clock of CLOCK_REALTIME on this host is off by so much from now on. */
void simuv_set_wall_offset(simuv_host host, int64_t usec);

/* That clock, in microseconds; also while the host is down. */
int64_t simuv_get_wall_usec(simuv_host host);

/* How long a sync of this host's disk takes from now on; without this 50 to 500 usec. Threads wait as
 * long in fsync() and its like; loops do not, as time stands still while their code runs.
 */
void simuv_set_sync_time(simuv_host host, int64_t min_usec, int64_t max_usec);

/* Wait as long; for code that stands for a disk. Code of hosts calls this. */
void simuv_wait_for_sync(void);

/* Run what is due, in the order of time, until simulated time 'usec' or simuv_stop(). 'step' (or
 * NULL) is called after each turn of a loop, and so outside of all hosts.
 */
void simuv_run_until(int64_t usec, void (*step)(void *data), void *data);
void simuv_stop(void); /* may be called from anywhere */

/* Call 'fn' at this time, outside of all hosts. */
void simuv_at(int64_t usec, void (*fn)(void *data), void *data);

/* The process on this host ends between two instructions: its loops and threads never run again,
 * its memory stays allocated. Files that it opened with open() are closed, and their locks gone. Its
 * connections end at once for their peers, with a reset or an end of file; if it is silent, the
 * whole machine is gone and peers hear nothing.
 */
void simuv_crash(simuv_host host, bool is_silent);

/* Code may run on this host again, as a new process on a machine that is up. */
void simuv_boot(simuv_host host);

struct simuv_path {
    int64_t latency_min_usec, latency_max_usec;
    double stall; /* chance that a segment waits for a retransmission, for 0.2 to 3 s */
    double reset; /* chance that a segment resets its connection instead of arriving */
    bool is_cut;  /* nothing arrives; what was sent comes when the path is whole again */
};

/* One direction; without this it takes 50 to 300 usec and nothing is lost. */
void simuv_set_path(simuv_host from, simuv_host to, const struct simuv_path *path);

/* Of every event that ran and every byte that was sent: two runs of a seed must agree. */
uint64_t simuv_hash(void);

/* Write a line for each event from now on, to find where two runs part; NULL = stop. */
void simuv_trace(FILE *to);

#endif
