/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_decide.h - a pass over the whole tree: what etcd has, what the database has, and what they agreed on
 *
 * In one transaction, what is taken from etcd becomes a change of the configuration tree, and what
 * etcd is to be asked for is noted before it is asked. Bases are settings "etcd/NAMESPACE/KEY", the
 * history that they belong to is "etcd.history/NAMESPACE".
 */
#ifndef AQ_MANAGER_ETCD_ETCD_DECIDE_H
#define AQ_MANAGER_ETCD_ETCD_DECIDE_H

#include "manager/cluster/cluster.h"
#include "manager/etcd/etcd_view.h"

/* Marks by which an etcd is recognised as the one of before: the cluster's id, a revision that it must have
 * reached, and the key that was changed last then, with its revision.
 */
struct etcd_history {
    uint64_t cluster_id; /* 0 = there was never an agreement */
    int64_t revision;
    int64_t witness_revision; /* 0 = there was no key */
    char *witness;            /* as etcd has it, without the prefix */
    size_t witness_len;
};

void etcd_history_done(struct etcd_history *history);
/* As it is in the database; zeroed if there is none. -EUCLEAN. */
int etcd_history_load(struct store_tx *tx, const char *namespace, struct etcd_history *ret,
                      struct aq_error *err);

/* A request to etcd, and whether it was done. */
struct etcd_push {
    char *raw; /* the key without the prefix */
    size_t raw_len;
    char *value;           /* NULL = to be deleted */
    int64_t mod_revision;  /* of the key before */
    int64_t made_revision; /* 0 = not done, as far as is known */
};

struct etcd_pushes {
    struct etcd_push *items;
    size_t count, cap;
};

void etcd_pushes_done(struct etcd_pushes *pushes);

struct etcd_pass {
    const char *namespace;
    const struct etcd_view *view; /* does not change meanwhile */
    uint64_t cluster_id;
    bool has_history;
    bool needs_proof; /* has_history is found out: some key is as it was at the last agreement */
    const struct etcd_history *history; /* that is in the database */
    const struct etcd_pushes *made;     /* of the pass before: what it did is a base, although
                                           somebody may have changed it since */

    /* afterwards */
    struct etcd_pushes pushes;
    size_t taken;                  /* keys */
    struct config_entries lost;    /* keys of which both sides had a change, and what was done */
    struct config_entries refused; /* keys whose value in etcd cannot be one of the tree, and why */
    struct etcd_history agreed;    /* written in place of 'history'; cluster_id 0 = it was not */
};

void etcd_pass_done(struct etcd_pass *pass);

/* config_change.decide, with the pass as data. */
int etcd_decide(struct store_tx *tx, struct config_change *change, void *pass,
                struct aq_error *err);

#endif
