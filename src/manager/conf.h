/* SPDX-License-Identifier: Apache-2.0 */
/* conf.h - the manager's settings: manager.toml, ALIQUOT_* and options */
#ifndef AQ_MANAGER_CONF_H
#define AQ_MANAGER_CONF_H

#include "conf/conf.h"
#include "manager/call/api.h"
#include "manager/account/password_rules.h"
#include "manager/etcd/etcd.h"
#include "manager/login/signup.h"
#include "manager/serving/serving_prometheus.h"
#include "manager/stream/stream.h"
#include "redis/redis_client.h"
#include "store/retention.h"

struct manager_conf {
    struct conf_listen listen; /* REST, GraphQL, event streams */
    char *tls_cert, *tls_key;
    bool insecure;           /* plain HTTP on an address that is not local */
    struct conf_listen link; /* agents */
    char *link_names;        /* "a.example.org, 10.0.0.1" for the link's certificate */
    char *state_dir;
    char *database;          /* URI; NULL = a file in the state folder */
    char *name;              /* among several managers; NULL = see manager_claim_make() */
    char *advertise;         /* URL of the API for others; NULL = made of 'listen' */
    char *link_advertise;    /* host:port of the link for others; NULL = made of 'link' */
    char *scheduler_plugins; /* NULL = none */
    char *log_level;
    struct conf_list allow_origins;   /* web pages that may use the API */
    struct conf_list trusted_proxies; /* addresses */
    struct conf_list callback_networks;
    int64_t remembered_requests;
    struct password_rules passwords;
    struct signup_rules signup;
    struct prometheus_settings prometheus;
    struct redis_settings redis;
    struct etcd_settings etcd;
    struct transfer_limits transfer_limits;
    int64_t ticket_lifetime_usec; /* of apps */
    char *metrics_listen, *metrics_tls_cert, *metrics_tls_key;
    bool metrics_insecure;
    char *cluster_pool; /* addresses of networks between agents */
    int64_t heartbeat_usec, agent_timeout_usec, kill_grace_usec;
    int64_t attempts_age_usec, attempts_sessions;
    int64_t session_bytes_max, user_session_bytes_max, array_size_max;
    int64_t execution_timeout_usec;                 /* 0 = none */
    int64_t retention_usec[RETENTION_ENTITY_COUNT]; /* 0 = forever */
};

extern const struct conf_item manager_conf_items[];

/* From 'file', or the default one if NULL (which may be missing). */
int manager_conf_load(const char *file, struct manager_conf *ret, struct aq_error *err);
void manager_conf_done(struct manager_conf *conf);

#endif
