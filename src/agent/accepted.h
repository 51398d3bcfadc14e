/* accepted.h - which orders this node has taken, in one file
 *
 * A program runs at most once, also when the power fails between its start
 * and the moment when the disk has heard of it. So before anything of an order
 * is started, the kernel's id and attempt are durable in the file 'accepted';
 * one flush covers all orders that came together. The kernels' folders need
 * no flush then: after a restart of the machine nothing of them runs any
 * more, and accepted_open() writes into each of them that it was lost, except
 * where the kernel's own exit record is there. A restart of the agent alone
 * finds the folders as they were.
 *
 *   BOOT          /proc/sys/kernel/random/boot_id of the agent that wrote it
 *   ID ATTEMPT    an order was taken; the largest attempt counts
 *   ID 0          the kernel is forgotten
 *
 * A last line without its end was never acknowledged. Belongs to one thread at
 * a time.
 */
#ifndef AQ_AGENT_ACCEPTED_H
#define AQ_AGENT_ACCEPTED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/uuid.h"

struct accepted;

/* Read the file below the state folder (a path), compare it with the folders
 * below its kernels/, conclude what a restart of the machine ended, and begin
 * a new file.
 */
int accepted_open(const char *state, struct accepted **ret, struct aq_error *err);
/* NULL is fine. */
void accepted_free(struct accepted *accepted);

/* Note an attempt, or with 0 that the kernel is forgotten. -ENOMEM. */
int accepted_note(struct accepted *accepted, const struct uuid *id, int64_t attempt,
                  struct aq_error *err);

/* Write down what was noted; with 'durable' also wait for the disk. After a
 * failure the next call writes everything anew.
 */
int accepted_write(struct accepted *accepted, bool durable, struct aq_error *err);

#endif
