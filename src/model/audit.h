/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - entries of the audit log: who did or tried what
 *
 * A change and its entry are written in one transaction: as an event of its batch, or by
 * audit_log_add_change() of store/audit_log.h.
 */
#ifndef AQ_MODEL_AUDIT_H
#define AQ_MODEL_AUDIT_H

#include "base/strbuf.h"
#include "base/uuid.h"
#include "model/session.h"

struct event_batch;

#define AUDIT_NAME_MAX 256 /* with the NUL; longer ones are cut */
#define AUDIT_DOMAIN_MAX 65
#define AUDIT_ADDRESS_MAX 46
#define AUDIT_REQUEST_MAX 65
#define AUDIT_SIDE_MAX 4096 /* bytes of what was before, and of what is after */

/* Who asks for a change, and from where. A value: copy it where the request may end first. */
struct audit_who {
    struct uuid user_id;            /* nil = nobody who is known */
    char user_name[AUDIT_NAME_MAX]; /* e-mail */
    char domain[AUDIT_DOMAIN_MAX];  /* "" = none, of the texts below, too */
    char access_key[ACCESS_KEY_MAX], address[AUDIT_ADDRESS_MAX], request_id[AUDIT_REQUEST_MAX];
    const char *action; /* static: what the change, of several the first, is called in place of
                           its own name; or NULL */
};

/* A copy of who asks, or of nobody. */
struct audit_by {
    bool is_some;
    struct audit_who who;
};

static inline struct audit_by audit_by_copy(const struct audit_who *by)
{
    return by ? (struct audit_by){ true, *by } : (struct audit_by){ .is_some = false };
}

static inline const struct audit_who *audit_by_get(const struct audit_by *by)
{
    return by->is_some ? &by->who : NULL;
}

/* Texts may be NULL but for the first two. 'before' and 'after' are JSON objects of the members
 * that change, without secrets.
 */
struct audit_change {
    const char *action, *object_kind;
    const char *object_id, *object_name;
    const char *object_domain; /* whose administrators see it; NULL = superadmins only */
    const char *before, *after;
};

/* A row. Texts that may be NULL: domain, access_key, address, object_*, detail, request_id. */
struct audit_entry {
    int64_t at_usec;
    struct uuid user_id;   /* nil = no user that exists */
    const char *user_name; /* e-mail, or the name that was tried */
    const char *domain;    /* of the user */
    const char *access_key, *address;
    const char *action;
    const char *object_kind, *object_id, *object_name, *object_domain;
    const char *outcome;
    int64_t times;      /* so often in a row, the last time now */
    const char *detail; /* JSON */
    const char *request_id;
};

/* The entry of a change that was made; it borrows all texts. */
struct audit_entry audit_entry_make(const struct audit_who *by, const struct audit_change *change,
                                    const char *detail, int64_t at_usec);

/* Append {"before": ..., "after": ...}; nothing if both are NULL. Sides that are too long are
 * cut, and say so in a member "...".
 */
void audit_write_detail(const struct audit_change *change, struct strbuf *out);

/* Add the entry of a change that 'by' makes to its batch; nothing for NULL. */
void event_batch_audit(struct event_batch *batch, const struct audit_who *by,
                       const struct audit_change *change);

/* The texts of an entry, for who copies it. */
#define AUDIT_ENTRY_TEXTS 12
void audit_entry_texts(struct audit_entry *entry, const char **ret[AUDIT_ENTRY_TEXTS]);

#endif
