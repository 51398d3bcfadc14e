/* create.h - the parts of making a session; inside src/manager/core
 *
 * request.c checks a request and builds the session; access.c knows which
 * resource groups its owner may use; admission.c whether it may wait; create.c
 * brings them together, reads from the store what memory does not have, and
 * commits.
 */
#ifndef AQ_MANAGER_CORE_CREATE_H
#define AQ_MANAGER_CORE_CREATE_H

#include "manager/core/parts.h"

/* ---- access.c ---- */

#define ACCESS_KEY_TEXT_MAX (ACCESS_KEY_MAX + UUID_TEXT_MAX + 68)

struct allowed {
    char **names; /* sorted */
    size_t count;
};

/* NULL if it has to be read first. */
const struct allowed *access_find(const struct core *core, const struct session *s);
/* On a thread of the store. */
int access_read(struct store_tx *tx, const struct session *s, struct allowed **ret,
                struct aq_error *err);
/* Is what they may use the same? */
bool access_is_same(const struct session *a, const struct session *b);
/* Takes 'a'. */
void access_keep(struct core *core, const struct session *s, struct allowed *a);

/* ---- request.c ---- */

/* Check 'req' against memory and build what it asks for: everything but the
 * resource group and dependencies. *ret is zeroed by the caller and done with
 * session_done() in any case.
 */
int request_build(const struct core *core, const struct session_request *req,
                  struct session *ret, struct aq_error *err);
/* Shared memory that it asks for; 0 = it does not say. -EINVAL if that is no size. */
int request_shmem(const struct session_request *req, int64_t *ret, struct aq_error *err);

/* ---- admission.c ---- */

/* What waits of one owner, counted when it is first needed; .access_key "" at first. */
struct admission_queue {
    char access_key[ACCESS_KEY_MAX];
    int64_t count;
    struct slots slots;
};
void admission_done(struct admission_queue *queue);

/* Whether 's' may wait, by sched_admit(): then its resource group is set, that of
 * that name or the first that takes it if NULL, and it counts as waiting for those
 * of the same request that come after it. Errors of sched_admit(), with all that is
 * wrong in the text.
 */
int admission_check(struct core *core, struct session *s, const char *resource_group,
                    int64_t shmem_bytes, struct admission_queue *queue, struct aq_error *err);

#endif
