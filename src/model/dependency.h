/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.h - sessions that wait for a status or an end of others
 *
 * A request names each as "SESSION" or "CONDITION:SESSION", where SESSION is a name or an id, which
 * have no colon. The conditions are those of sbatch --dependency, under names of our own. Pure.
 */
#ifndef AQ_MODEL_DEPENDENCY_H
#define AQ_MODEL_DEPENDENCY_H

#include <stdbool.h>

#include "base/error.h"
#include "base/uuid.h"
#include "model/status.h"

/* Which state of the other session lets the waiting one start. */
enum dependency_condition {
    DEPENDENCY_SUCCESS, /* it ended with success: afterok */
    DEPENDENCY_FAILURE, /* it ended without success, also if it was cancelled: afternotok */
    DEPENDENCY_END,     /* it ended in any way: afterany */
    DEPENDENCY_START    /* it has run, or ended before: after */
};

struct session_dependency {
    struct uuid id;
    enum dependency_condition condition;
    /* Derived from the other's row: */
    bool has_run; /* it has been RUNNING */
    bool ended;
    enum session_result result; /* once it has ended */
};

enum dependency_state {
    DEPENDENCY_WAITING,
    DEPENDENCY_MET,
    DEPENDENCY_UNMET /* the other has ended otherwise: it can never be met */
};

enum dependency_state dependency_state(const struct session_dependency *d);

/* "success", "failure", "end", "start". */
const char *dependency_condition_name(enum dependency_condition condition);
/* 0 or -EINVAL. */
int dependency_condition_parse(const char *text, enum dependency_condition *ret);

/* Split "CONDITION:SESSION"; '*ret_session' points into 'text'. -EINVAL with field "dependencies".
 */
int dependency_parse(const char *text, enum dependency_condition *ret, const char **ret_session,
                     struct aq_error *err) AQ_UNTRUSTED;

#endif
