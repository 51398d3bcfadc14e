/* SPDX-License-Identifier: Apache-2.0 */
/* play_request.h - one request of a user to the manager, until it has an answer
 *
 * It is sent again when its answer does not come because the manager has crashed, and when the
 * manager says that it cannot write now. What its answer promises is written down in
 * play_sessions.h. A request lives as long as the run.
 */
#ifndef AQ_SIM_PLAY_PLAY_REQUEST_H
#define AQ_SIM_PLAY_PLAY_REQUEST_H

#include <stdint.h>

struct play;
struct play_node;
struct play_session;

enum play_request_kind {
    PLAY_CREATE,
    PLAY_FIND, /* what a creation made whose answer was lost; follows from PLAY_CREATE */
    PLAY_TERMINATE,
    PLAY_FORCE,
    PLAY_RESTART,
    PLAY_RENAME,
    PLAY_PRIORITY,
    PLAY_DRAIN,     /* of an agent, as the next two */
    PLAY_DRAIN_END, /* and end or requeue its sessions */
    PLAY_UNDRAIN
};

struct play_target {
    struct play_session *session; /* NULL = 'node' */
    struct play_node *node;
    char *name;   /* the new one; lives as long as the run */
    int priority; /* the new one */
};

/* Send it so much later. */
void play_request(struct play *play, enum play_request_kind kind, const struct play_target *on,
                  int64_t after_usec);

#endif
