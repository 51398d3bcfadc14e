/* SPDX-License-Identifier: Apache-2.0 */
/* accepted_log.h - the durable log of the commands this node has accepted
 *
 * A program runs at most once, also when the power fails between its start
 * and the moment when the disk has heard of it. So before anything of a command
 * is started, the kernel's id and attempt are durable in the file 'accepted';
 * one flush covers all commands that came together. The kernels' directories need
 * no flush then: after a restart of the machine nothing of them runs any
 * more, and accepted_log_open() writes into each of them that it was lost, except
 * where the kernel's own exit record is there. A restart of the agent alone
 * finds the directories as they were.
 *
 *   BOOT          /proc/sys/kernel/random/boot_id of the agent that wrote it
 *   ID ATTEMPT    a command was taken; the largest attempt counts
 *   ID 0          the kernel is forgotten
 *
 * A last line without its end was never acknowledged.
 *
 * Without room for a new file, a start keeps the existing one, which has every accepted command,
 * and commands are refused until a new one is written. After a restart of the machine the file
 * keeps the former BOOT, so that a further start concludes once more what the restart ended. If the
 * conclusions themselves find no room, the start fails. Belongs to one thread at a time.
 */
#ifndef AQ_AGENT_DISK_ACCEPTED_LOG_H
#define AQ_AGENT_DISK_ACCEPTED_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/uuid.h"

struct accepted_log;

/* Read the file below the state directory (a path), compare it with the directories
 * below its kernels/, conclude what a restart of the machine ended, and begin
 * a new file; without room for it, the next accepted_log_write() does.
 */
int accepted_log_open(const char *state, struct accepted_log **ret, struct aq_error *err);
/* NULL is fine. */
void accepted_log_free(struct accepted_log *accepted);

/* Note an attempt, or with 0 that the kernel is forgotten. */
void accepted_log_note(struct accepted_log *accepted, const struct uuid *id, int64_t attempt);

/* Is there a record that could not be written? */
bool accepted_log_is_behind(const struct accepted_log *accepted);

/* Write down what was noted; with 'durable' also wait for the disk. After a
 * failure the next call writes everything from memory.
 */
int accepted_log_write(struct accepted_log *accepted, bool durable, struct aq_error *err);

#endif
