/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.h - sessions that wait for a status or an end of others, or of arrays
 *
 * A request names each as "SESSION" or "CONDITION:SESSION", where SESSION is the name or id of a
 * session or an array, which have no colon, or "ARRAY[INDEX]". The conditions are those of
 * sbatch --dependency, under names of our own. Pure.
 */
#ifndef AQ_MODEL_DEPENDENCY_H
#define AQ_MODEL_DEPENDENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/uuid.h"
#include "model/status.h"

/* Which state of the other session lets the waiting one start. */
enum dependency_condition {
    DEPENDENCY_SUCCESS, /* it ended with success: afterok */
    DEPENDENCY_FAILURE, /* it ended without success, also if it was cancelled: afternotok */
    DEPENDENCY_END,     /* it ended in any way: afterany */
    DEPENDENCY_START,   /* it has run, or ended before: after */
    /* Of an array that waits for another array: each element waits for the success of the other's
     * element of the same index, so its sessions have DEPENDENCY_SUCCESS: aftercorr.
     */
    DEPENDENCY_CORRESPONDING
};

#define DEPENDENCY_ALL INT64_C(-1)

struct session_dependency {
    struct uuid id; /* of a session, or of an array */
    bool is_array;
    int64_t element; /* of an array: the index of an element without a row when the dependency was
                        created; DEPENDENCY_ALL = all elements, for which a condition is met if it
                        is for each, and failure is the end of all of which one did not succeed */
    enum dependency_condition condition;
    /* Derived from the other's row: */
    bool has_run;               /* it has been RUNNING; all elements have, or have ended */
    bool ended;                 /* also an element that was cancelled before it had a row */
    bool has_failed;            /* of an array: an element has ended without success */
    enum session_result result; /* once it has ended; of an array SUCCESS if all succeeded */
};

/* Both wait for the same; the conditions may differ. */
bool dependency_is_same(const struct session_dependency *a, const struct session_dependency *b);

enum dependency_state {
    DEPENDENCY_WAITING,
    DEPENDENCY_MET,
    DEPENDENCY_UNMET /* the other has ended otherwise: it can never be met */
};

enum dependency_state dependency_state(const struct session_dependency *d);

/* "ID", "ID[*]" of an array, "ID[7]" of an element; appended. And back: -EINVAL, with only the
 * members that say what is waited for set.
 */
void dependency_write_target(const struct session_dependency *d, struct strbuf *out);
int dependency_parse_target(const char *text, struct session_dependency *ret);

/* "success", "failure", "end", "start", "corresponding". */
const char *dependency_condition_name(enum dependency_condition condition);
/* 0 or -EINVAL. */
int dependency_condition_parse(const char *text, enum dependency_condition *ret);

/* Split "CONDITION:SESSION"; '*ret_session' points into 'text'. -EINVAL with field "dependencies".
 */
int dependency_parse(const char *text, enum dependency_condition *ret, const char **ret_session,
                     struct aq_error *err) AQ_UNTRUSTED;

#endif
