/* SPDX-License-Identifier: Apache-2.0 */
/* play_ends.h - whether sessions end as their users and their programs made them end ("durable") */
#ifndef AQ_SIM_PLAY_PLAY_ENDS_H
#define AQ_SIM_PLAY_PLAY_ENDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/uuid.h"
#include "model/status.h"

struct play;
struct play_session;

#define PLAY_KERNELS_MAX 8

/* A session that has ended, as the manager says. */
struct play_end {
    enum session_status status;
    enum session_result result;
    const char *reason; /* NULL = none */
    struct uuid kernels[PLAY_KERNELS_MAX];
    size_t kernel_count;
    bool has_exit; /* of the first, with the code */
    int exit_code;
};

/* Look at it and count it. 's' is NULL for a session that no user knows yet; of an array it is the
 * array.
 */
void play_ends_take(struct play *play, const struct play_session *s, const struct play_end *end);

#endif
