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

/* The kind of an error by which etcd refuses the token: to authenticate again helps. */
#define ETCD_TOKEN_REFUSED "etcd-token-refused"
/* The kind of an error for a revision that etcd keeps no longer. */
#define ETCD_COMPACTED "etcd-compacted"
/* The kind of an error by which an etcd without users refuses a login. */
#define ETCD_NO_USERS "etcd-no-users"

/* ---- requests: appended to 'out' ---- */

struct etcd_range {
    const char *key;
    size_t key_len;
    const char *end;  /* the first key behind the range; NULL = only 'key' */
    int64_t limit;    /* keys; 0 = all */
    int64_t revision; /* at which to look; 0 = the latest */
    int64_t newer;    /* only keys with this mod_revision or a later one; 0 = all */
    bool keys_only;
};

void etcd_write_range(struct strbuf *out, const struct etcd_range *range);

/* From 'begin' up to and without 'end', changes of 'revision' and later ones. */
void etcd_write_watch(struct strbuf *out, const char *begin, const char *end, int64_t revision);

void etcd_write_login(struct strbuf *out, const char *user, const char *password);

/* A change that is made if the key was last changed at 'mod_revision' (0 = it does not exist). */
struct etcd_put {
    const char *key;
    size_t key_len;
    const char *value; /* NULL = the key is deleted */
    int64_t mod_revision;
};

/* All are made, or none. */
void etcd_write_txn(struct strbuf *out, const struct etcd_put *puts, size_t count);

/* ---- answers ----
 *
 * 0; -EPROTO for what etcd does not answer like this; -EACCES: it refused, with its own text, and
 * one of the kinds above where it fits. Untouched on failure.
 */

struct etcd_header {
    uint64_t cluster_id;
    int64_t revision; /* 0 = not said */
};

struct etcd_pair {
    char *key, *value; /* NUL-terminated beside their lengths */
    size_t key_len, value_len;
    int64_t mod_revision;
    bool is_gone;   /* deleted; of a watch */
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
    bool is_created;         /* the first */
};

/* -EACCES, too, for a watch that etcd has ended. */
int etcd_read_watch(const char *text, size_t len, struct etcd_watch_answer *ret,
                    struct aq_error *err) AQ_UNTRUSTED;

/* *ret_made: the changes were made; else a key was changed meanwhile. */
int etcd_read_txn(int status, const char *text, size_t len, struct etcd_header *ret, bool *ret_made,
                  struct aq_error *err) AQ_UNTRUSTED;

/* A token as a header can have it; to be freed. */
int etcd_read_login(int status, const char *text, size_t len, char **ret,
                    struct aq_error *err) AQ_UNTRUSTED;

#endif
