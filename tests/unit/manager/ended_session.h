/* SPDX-License-Identifier: Apache-2.0 */
/* ended_session.h - sessions that have ended, as the store has them */
#ifndef AQ_TESTS_UNIT_MANAGER_ENDED_SESSION_H
#define AQ_TESTS_UNIT_MANAGER_ENDED_SESSION_H

#include "world.h"

/* A session that has ended, as the store has it. */
struct ended_session {
    struct uuid id;
    enum session_status status;
    enum session_result result;
    char reason[40];
    bool has_exit;
    int exit_code;
    char data[1024];                    /* status_data */
    int64_t running_usec, started_usec; /* its last run; session_started_usec() */
};

struct ended_session ended_session_read(const struct uuid *id);

#endif
