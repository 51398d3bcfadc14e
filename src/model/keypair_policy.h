/* SPDX-License-Identifier: Apache-2.0 */
/* keypair_policy.h - what sessions of a keypair may use */
#ifndef AQ_MODEL_KEYPAIR_POLICY_H
#define AQ_MODEL_KEYPAIR_POLICY_H

#include "model/entity.h"

struct keypair_policy {
    char *name;
    bool is_active;             /* else no keypair may get it */
    bool unlimited_unspecified; /* default_for_unspecified = UNLIMITED */
    struct slots total_slots;
    int64_t max_session_lifetime_sec; /* 0 = no limit */
    int64_t idle_timeout_sec;         /* 0 = no limit, -1 = as the configuration tree says */
    int64_t max_idle_extension_sec;   /* all extensions of a session together; 0 = no limit */
    int max_concurrent_sessions;      /* <= 0 = no limit */
    int max_concurrent_sftp_sessions; /* those of type system; the same */
    int max_containers_per_session;
    int max_pending_sessions;       /* <= 0 = no limit */
    struct slots max_pending_slots; /* that these may ask for together; missing = unlimited */
    int max_priority;               /* default 100 */
    bool host_network; /* sessions may use the network and the RDMA devices of their nodes */
};

extern const struct field keypair_policy_create[], keypair_policy_change[];
extern const struct entity keypair_policy_entity;

#endif
