/* create.h - the parts of making a session; inside src/manager/core
 *
 * request.c checks a request and builds the session; access.c knows which
 * resource groups its owner may use; create.c brings them together, reads
 * from the store what memory does not have, and commits.
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
/* What was counted for the sessions before, of one request; .access_key "" at first. */
struct queue_check {
    char access_key[ACCESS_KEY_MAX];
    int pending;
};
/* What only the owner's other sessions can speak against: how many wait. 's' counts
 * for those that come after it.
 */
int request_check_queue(const struct core *core, const struct session *s,
                        struct queue_check *check, struct aq_error *err);

#endif
