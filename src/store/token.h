/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - join tokens, agent certificates, revocation, settings
 *
 * For functions given to store_write() (all) and store_read() (those that
 * only look). A token is stored as its SHA-256, never in clear.
 */
#ifndef AQ_STORE_TOKEN_H
#define AQ_STORE_TOKEN_H

#include "model/agent.h"
#include "store/store.h"

#define TOKEN_HASH_SIZE 32
#define CERT_SERIAL_MAX 64 /* lower-case hex and NUL */

/* Remember a token that may be used once, by 'agent_id' only unless NULL. */
int token_create(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE],
                 const char *agent_id, int64_t now_usec, int64_t expires_usec,
                 struct aq_error *err);

/* Use it up. 1, or 0 if it is unknown, used, expired or meant for another agent. */
int token_use(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE], const char *agent_id,
              int64_t now_usec, struct aq_error *err);

/* Was a token made for one agent only? 1, or 0 (also for a token that is unknown). */
int token_is_bound(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE],
                   struct aq_error *err);

struct agent_cert {
    char serial[CERT_SERIAL_MAX];
    char agent_id[AGENT_ID_MAX + 1];
    int64_t issued_usec, expires_usec;
    int64_t revoked_usec; /* 0 = not revoked */
};

int cert_save(struct store_tx *tx, const struct agent_cert *cert, struct aq_error *err);

/* -ENOENT if it was never issued by this cluster. */
int cert_find(struct store_tx *tx, const char *serial, struct agent_cert *ret,
              struct aq_error *err);

/* All certificates of the agent that are not revoked yet; returns how many. */
int cert_revoke_agent(struct store_tx *tx, const char *agent_id, int64_t now_usec,
                      struct aq_error *err);

/* Calls 'visit' for each revoked certificate that has not expired at 'now_usec'. */
int cert_list_revoked(struct store_tx *tx, int64_t now_usec,
                      int (*visit)(void *data, const struct agent_cert *cert), void *data,
                      struct aq_error *err);

/* Small durable facts about the cluster, e.g. "cluster.id". The value is
 * appended to 'out'; -ENOENT without an error text if there is none.
 */
int setting_get(struct store_tx *tx, const char *key, struct strbuf *out, struct aq_error *err);
int setting_set(struct store_tx *tx, const char *key, const char *value, struct aq_error *err);
int setting_remove(struct store_tx *tx, const char *key, struct aq_error *err);

/* Microseconds since 1970: when the backup was made from which the database was
 * restored; "0" once an administrator has finished that.
 */
#define SETTING_RESTORED "manager.restored"

/* Let a domain (name), project (id) or keypair (access key) use a resource
 * group. Saying it twice is fine. -EBUSY: store_check_domain().
 */
enum allow_kind { ALLOW_DOMAIN, ALLOW_PROJECT, ALLOW_KEYPAIR };
int resource_group_allow(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                         const char *whom, struct aq_error *err);
/* May it, by what was said of itself? 1 or 0. */
int resource_group_is_allowed(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                              const char *whom, struct aq_error *err);
/* Take that back; with NULL for all resource groups. Also fine if it was not so. */
int resource_group_disallow(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                            const char *whom, struct aq_error *err);

#endif
