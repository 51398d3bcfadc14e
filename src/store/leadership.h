/* SPDX-License-Identifier: Apache-2.0 */
/* leadership.h - which manager of a cluster leads, and how another one takes over
 *
 * The row manager_lease of a database on a server says who leads. epoch counts
 * leaders, beat counts the leader's commits: both only grow, so that a change of
 * either is a sign of life, and neither clock is compared. A standby reads the
 * row from time to time and takes it by compare-and-swap on (epoch, beat). From
 * then on each commit of the former leader fails, because it ends with
 * "beat + 1 where the epoch is ours". See also store/lease.h, the leader's side.
 */
#ifndef AQ_STORE_LEADERSHIP_H
#define AQ_STORE_LEADERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/host_port.h"

/* Of a manager that leads, or wants to. */
struct leader_claim {
    char name[65];            /* of the manager; "" = a tool that has the database for a moment */
    char link[HOST_PORT_MAX]; /* host:port for agents and managers */
    char api[256];            /* URL */
    char version[33];
    char incarnation[37]; /* UUID of the process: its sessions on the server are named after it */
};

struct leader_view {
    int64_t epoch, beat, taken_usec; /* taken: wall clock of the leader */
    int64_t clock_usec;              /* the same at its last commit; 0 = not known */
    int64_t ahead_usec;              /* by which our wall clock is ahead of the leader's, as of the
                                        last commit that was seen to be new; 0 = not known */
    bool is_held;                    /* false: given up in good order, or never had */
    bool has_sessions;               /* the holder has sessions on the server */
    bool is_working;                 /* the server is at work on a transaction of the holder */
    struct leader_claim holder;      /* or the last one; or who is to lead next: with a name and
                                        without an incarnation */
};

/* One connection that looks at the row and may take it. Used by one thread. A call takes at most 5
 * s: 2 s for each host of 'uri' to connect to, 1 s for a lock, 4 s for an answer. What takes longer
 * is -EHOSTDOWN, and the next call connects again.
 */
struct leadership;

/* Errors as of store_open(), -EINVAL if 'uri' names no server or one behind a pooler of
 * transactions.
 */
int leadership_open(const char *uri, struct leadership **ret, struct aq_error *err);
void leadership_close(struct leadership *leadership);
AQ_DEFINE_CLEANUP(struct leadership, leadership_close)

/* -ENODATA: the database has no tables, or those of a version before managers had standbys: open it
 * by store_open() with epoch 0. -EHOSTDOWN: the server is away. -EBUSY: the table is locked, as while
 * its columns are changed. *ret_is_new (may be NULL): the connection is another one than that of the
 * last read that succeeded, perhaps to another server.
 */
int leadership_read(struct leadership *leadership, struct leader_view *ret, bool *ret_is_new,
                    struct aq_error *err);

/* Is the key in the file that of the database? -EKEYREJECTED if not, as of store_open(); a manager
 * without it could not lead.
 */
int leadership_check_key(struct leadership *leadership, const char *key_path, struct aq_error *err);

/* Take the row if (epoch, beat) are still those of 'seen', end the sessions of its holder on the
 * server, and wait until they are gone. Whether the holder is dead is the caller's to judge;
 * refused is only what cannot help. Errors:
 *   -ESTALE  another manager was faster, the holder goes on, or the server is at work for it (so
 *            the server is slow or waits for a standby of its own; a new leader would wait, too)
 *   -EACCES  the holder's sessions belong to a role whose sessions ours may not end
 *   -EBUSY   another program locks the row, or the holder's sessions do not end
 *   -EHOSTDOWN  the server does not answer
 *   -EUCLEAN the database is a copy that broke off
 * With -EBUSY and -EHOSTDOWN the row may be taken: the next read shows 'self' as the holder, and to take that
 * finishes it.
 */
int leadership_take(struct leadership *leadership, const struct leader_view *seen,
                    const struct leader_claim *self, int64_t *ret_epoch, struct aq_error *err);

#endif
