/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - the last bytes of a terminal's output, for those who attach */
#ifndef AQ_RUNNER_REPLAY_H
#define AQ_RUNNER_REPLAY_H

#include <stddef.h>

#include "runner/protocol.h"

struct replay {
    size_t total; /* bytes ever added */
    char bytes[RUNNER_REPLAY_MAX];
};

void replay_add(struct replay *replay, const char *bytes, size_t len);

/* The bytes from the 'at'-th on, counted from the oldest that is kept; *ret_len
 * of them lie in one piece, 0 = there are no more.
 */
const char *replay_get(const struct replay *replay, size_t at, size_t *ret_len);

#endif
