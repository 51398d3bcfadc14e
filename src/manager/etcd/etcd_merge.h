/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_merge.h - a key of the configuration tree that two places keep: which one follows the other
 *
 * A key has a value in our database, one in etcd, and a base: what both were when they were last
 * found to agree. The side that differs from the base has changed. The base also has the values that
 * we asked etcd to write since, so that our own change, which may have been made without an answer
 * that we saw, is never taken for one of somebody else.
 *
 * If both have changed, etcd's value wins; a value wins over a deletion on either side. An etcd that
 * does not have the history to which the bases belong (it was emptied, or restored from a backup)
 * changes and deletes nothing of ours: it is given what we have, and only keys of which we know
 * nothing are taken from it.
 *
 * Pure.
 */
#ifndef AQ_MANAGER_ETCD_ETCD_MERGE_H
#define AQ_MANAGER_ETCD_ETCD_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

#define ETCD_HASH_MAX 33 /* 32 hexadecimal digits, or "-" for no value */
#define ETCD_ASKED_MAX 8 /* values that we asked etcd to write, the latest */

/* Zeroed = they never agreed, and we have asked for nothing. */
struct etcd_base {
    int64_t mod_revision;                      /* of the key in etcd; 0 = it was not there */
    char ours[ETCD_HASH_MAX];                  /* of our value; "" counts as "-" */
    char asked[ETCD_ASKED_MAX][ETCD_HASH_MAX]; /* "" = the end */
};

/* As a text for the database, and back. -EINVAL for another text. */
void etcd_base_write(struct strbuf *out, const struct etcd_base *base);
int etcd_base_parse(const char *text, struct etcd_base *ret) AQ_UNTRUSTED;

/* The base where both have the value (NULL = none), which etcd wrote at 'mod_revision'. */
struct etcd_base etcd_base_agreed(const char *ours, int64_t mod_revision);
/* Note that etcd is asked to write the value, or NULL to delete it. */
void etcd_base_ask(struct etcd_base *base, const char *value);

struct etcd_sides {
    const char *ours, *theirs;    /* NULL = no value */
    int64_t mod_revision;         /* of theirs; 0 = not there */
    bool is_unusable;             /* theirs is there, and cannot be a value here: it counts as
                                     not changed; 'theirs' is NULL */
    bool has_history;             /* etcd has the history to which 'base' belongs */
    const struct etcd_base *base; /* NULL = none */
};

enum etcd_action {
    ETCD_LEAVE,  /* nothing is to be done */
    ETCD_RECORD, /* both agree, the base says something else */
    ETCD_TAKE,   /* ours becomes what theirs is */
    ETCD_PUSH,   /* theirs becomes what ours is */
};

struct etcd_verdict {
    enum etcd_action action;
    bool is_conflict; /* both had changed: the change of one side is lost */
};

struct etcd_verdict etcd_merge(const struct etcd_sides *sides);

#endif
