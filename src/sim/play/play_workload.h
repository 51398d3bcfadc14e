/* SPDX-License-Identifier: Apache-2.0 */
/* play_workload.h - users: they request sessions, and rename, restart and end them
 *
 * play_request.h sends what they ask for.
 */
#ifndef AQ_SIM_PLAY_PLAY_WORKLOAD_H
#define AQ_SIM_PLAY_PLAY_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct play;
struct play_session;

struct play_workload {
    bool is_over;   /* nothing new is requested */
    int names;      /* given so far */
    int unanswered; /* requests */
};

void play_workload_begin(struct play *play);

/* Request no other sessions, and end those that never end by themselves. */
void play_workload_stop(struct play *play);

/* A session was made: decide what its user does with it. */
void play_workload_plan(struct play *play, struct play_session *s);

/* The manager has announced this of it (NULL = of another): users may act on it at once. Also from
 * code of hosts.
 */
void play_workload_on_event(struct play *play, struct play_session *s, const char *event);

/* Seconds at random with this mean, at least one microsecond. */
int64_t play_random_usec(double mean_seconds);

#endif
