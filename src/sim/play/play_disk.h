/* SPDX-License-Identifier: Apache-2.0 */
/* play_disk.h - the disks of simulated hosts, for SQLite's files
 *
 * A VFS of SQLite that keeps files in memory, for the host whose code opens them. It knows what was
 * synced: a crash keeps this, and of later writes some, in pieces. That a file was made or removed
 * is durable at once. Chance comes from simuv.h. Only simulated code uses it.
 */
#ifndef AQ_SIM_PLAY_PLAY_DISK_H
#define AQ_SIM_PLAY_PLAY_DISK_H

#include "simuv/simuv.h"

/* Once in a process, after simuv_begin() and before any database is opened: SQLite's default. */
void play_disk_register(void);

/* The host has lost its power, after simuv_crash(): its open files are nobody's any more. */
void play_disk_crash(simuv_host host);

/* The chance of each read, write and sync to fail with EIO, and of each write to find no room. */
void play_disk_set_faults(simuv_host host, double eio, double enospc);

#endif
