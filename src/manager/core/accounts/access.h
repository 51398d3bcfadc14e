/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - who may use which resource group */
#ifndef AQ_MANAGER_CORE_ACCOUNTS_ACCESS_H
#define AQ_MANAGER_CORE_ACCOUNTS_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/accounts.h"
#include "model/session.h"

struct aq_error;
struct core;
struct store_tx;

/* Resource groups that were found allowed: read them again. */
void access_forget(struct core *core);

#define ACCESS_KEY_TEXT_MAX (ACCESS_KEY_MAX + UUID_TEXT_MAX + 68)

struct allowed {
    char **names; /* sorted */
    size_t count;
};

/* NULL if it has to be read first. */
const struct allowed *access_find(const struct core *core, const struct session *s);

/* On a thread of the store. -EBUSY "conflict": the domain was renamed meanwhile. */
int access_read(struct store_tx *tx, const struct session *s, struct allowed **ret,
                struct aq_error *err);

/* Is what they may use the same? */
bool access_is_same(const struct session *a, const struct session *b);

/* Takes 'a'. */
void access_keep(struct core *core, const struct session *s, struct allowed *a);

#endif
