/* SPDX-License-Identifier: Apache-2.0 */
/* leadership.h - which manager of a cluster leads, and how another one takes over
 *
 * The row manager_lease of a database on a server names the leader. epoch counts
 * leaders, beat counts the leader's commits. Both only grow, so a change of either
 * shows that the leader is alive, and clocks of machines are not compared. A standby
 * reads the row five times a second and takes it by compare-and-swap on (epoch,
 * beat). From then on each commit of the former leader fails, as its last statement
 * updates beat where epoch is its own. See store/lease.h for the leader's side.
 */
#ifndef AQ_STORE_LEADERSHIP_H
#define AQ_STORE_LEADERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/host_port.h"

/* Identity of a manager that leads or may take the lead. */
struct leader_claim {
    char name[65];            /* of the manager; "" = a tool that briefly uses the database */
    char link[HOST_PORT_MAX]; /* host:port for agents and managers */
    char api[256];            /* URL */
    char version[33];
    char incarnation[37]; /* UUID of the process, part of the names of its sessions on the server */
};

struct leader_view {
    int64_t epoch, beat, taken_usec; /* taken: wall clock of the leader */
    int64_t clock_usec;              /* the same at its last commit; 0 = not known */
    int64_t ahead_usec;              /* by which our wall clock is ahead of the leader's, as of the
                                        last commit that was seen to be new; 0 = not known */
    bool is_held;                    /* false: yielded, or never taken */
    bool has_sessions;               /* the holder has sessions on the server */
    bool is_working;                 /* the server is at work on a transaction of the holder */
    struct leader_claim holder;      /* the present or last leader; with a name but without an
                                        incarnation, the successor that it named */
};

/* A connection that reads the row and may take it. Used by one thread at a time. A call takes at
 * most 5 s: connecting 2 s for each host of 'uri', a lock 1 s, an answer 4 s. A call that exceeds
 * this returns -EHOSTDOWN, and the next one reconnects.
 */
struct leadership;

/* Errors of store_open(); -EINVAL if 'uri' is not a server's, or its server is behind a pooler that
 * shares connections between transactions.
 */
int leadership_open(const char *uri, struct leadership **ret, struct aq_error *err);
void leadership_close(struct leadership *leadership);
AQ_DEFINE_CLEANUP(struct leadership, leadership_close)

/* -ENODATA: the database has no tables, or those of a version without standbys; store_open() with
 * epoch 0 creates or upgrades them. -EHOSTDOWN: the server cannot be reached. -EBUSY: the table is
 * locked, e.g. while its columns are changed. *ret_is_new (ret_is_new may be NULL): the connection
 * differs from that of the last successful read, perhaps to another server.
 */
int leadership_read(struct leadership *leadership, struct leader_view *ret, bool *ret_is_new,
                    struct aq_error *err);

/* Compare the sealing key in the file with the database's. -EKEYREJECTED, as of store_open(), if
 * they differ: a manager without the key cannot lead.
 */
int leadership_check_key(struct leadership *leadership, const char *key_path, struct aq_error *err);

/* Take the row if (epoch, beat) are still those of 'seen', end the sessions of its holder on the
 * server, and wait until they have ended. The caller decides whether the holder is dead; a take
 * that could not help is refused. Errors:
 *   -ESTALE  another manager was faster, the holder has committed, or the server is working on a
 *            transaction of the holder (it is slow, or waits for a standby of its own; a new leader
 *            would wait, too)
 *   -EACCES  the holder's sessions belong to a role whose sessions ours may not end
 *   -EBUSY   another program locks the row, or the holder's sessions do not end
 *   -EHOSTDOWN  the server does not answer
 *   -EUCLEAN the database is an unfinished copy
 * After -EBUSY and -EHOSTDOWN the row may have been taken: then the next read shows 'self' as the
 * holder, and taking that view completes the take.
 */
int leadership_take(struct leadership *leadership, const struct leader_view *seen,
                    const struct leader_claim *self, int64_t *ret_epoch, struct aq_error *err);

#endif
