/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_wire.h - requests to etcd's JSON gateway (/v3/...), and its answers
 *
 * Keys and values are bytes, written as base64; 64-bit numbers are texts, and members that are
 * zero are left out. Pure.
 */
#ifndef AQ_MANAGER_ETCD_ETCD_WIRE_H
#define AQ_MANAGER_ETCD_ETCD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strbuf.h"

#define ETCD_PAIRS_MAX 20000 /* of one answer */
#define ETCD_TOKEN_MAX 8192  /* bytes; JWTs are long */

/* Kind of an error: etcd refused the token; authenticating again helps. */
#define ETCD_TOKEN_REFUSED "etcd-token-refused"
/* Kind of an error: etcd has compacted the revision. */
#define ETCD_COMPACTED "etcd-compacted"
/* Kind of an error: a login was refused, as authentication is not enabled in etcd. */
#define ETCD_NO_USERS "etcd-no-users"

/* ---- requests: appended to 'out' ---- */

struct etcd_range {
    const char *key;
    size_t key_len;
    const char *end;  /* the first key behind the range; NULL = only 'key' */
    int64_t limit;    /* keys; 0 = all */
    int64_t revision; /* to read at; 0 = the latest */
    int64_t newer;    /* only keys with this mod_revision or a later one; 0 = all */
    bool keys_only;
};

void etcd_write_range(struct strbuf *out, const struct etcd_range *range);

/* Watch the keys from 'begin' up to but without 'end', from 'revision' on. */
void etcd_write_watch(struct strbuf *out, const char *begin, const char *end, int64_t revision);

void etcd_write_login(struct strbuf *out, const char *user, const char *password);

/* A write that etcd makes if the key was last changed at 'mod_revision' (0 = it does not exist). */
struct etcd_put {
    const char *key;
    size_t key_len;
    const char *value; /* NULL = the key is deleted */
    int64_t mod_revision;
};

/* One transaction: all writes are made, or none. */
void etcd_write_txn(struct strbuf *out, const struct etcd_put *puts, size_t count);

/* ---- answers ----
 *
 * Return 0; -EPROTO for an answer that is not of this form; -EACCES if etcd refused the request,
 * with its text and, where one fits, a kind of the above. *ret is untouched on failure.
 */

struct etcd_header {
    uint64_t cluster_id;
    int64_t revision; /* 0 = not given */
};

struct etcd_pair {
    char *key, *value; /* NUL-terminated beside their lengths */
    size_t key_len, value_len;
    int64_t mod_revision;
    bool is_gone;   /* in a watch: deleted */
    bool has_lease; /* etcd deletes it when its owner is gone */
};

/* Zeroed = none. */
struct etcd_pairs {
    struct etcd_pair *items;
    size_t count, cap;
};

void etcd_pairs_done(struct etcd_pairs *pairs);

struct etcd_range_answer {
    struct etcd_header header;
    struct etcd_pairs pairs;
    int64_t count; /* of keys in the range */
    bool has_more;
};

int etcd_read_range(int status, const char *text, size_t len, struct etcd_range_answer *ret,
                    struct aq_error *err) AQ_UNTRUSTED;

/* A line of a watch. */
struct etcd_watch_answer {
    struct etcd_header header;
    struct etcd_pairs pairs; /* in the order of the changes */
    bool is_created;         /* the answer that creates the watch */
};

/* Also -EACCES if etcd ended the watch. */
int etcd_read_watch(const char *text, size_t len, struct etcd_watch_answer *ret,
                    struct aq_error *err) AQ_UNTRUSTED;

/* *ret_made: the writes were made; false = a key had another mod_revision. */
int etcd_read_txn(int status, const char *text, size_t len, struct etcd_header *ret, bool *ret_made,
                  struct aq_error *err) AQ_UNTRUSTED;

/* *ret is a token of printable characters, to be freed. */
int etcd_read_login(int status, const char *text, size_t len, char **ret,
                    struct aq_error *err) AQ_UNTRUSTED;

#endif
