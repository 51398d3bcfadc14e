/* SPDX-License-Identifier: Apache-2.0 */
/* The manager's settings: manager.toml, ALIQUOT_* and options. */
#include "manager/conf.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "model/array_range.h"
#include "model/cluster_network.h"

#define AT(member) offsetof(struct manager_conf, member)

#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)
#define KEPT_MAX_USEC (36500 * DAY_USEC)

const struct conf_item manager_conf_items[] = {
    { "manager", "listen", CONF_LISTEN, AT(listen), "127.0.0.1:8081", 0, 0, 0,
      "Address of the API." },
    { "manager", "tls-cert", CONF_PATH, AT(tls_cert), NULL, 0, 0, 0,
      "Certificate chain of the API (PEM); without one it speaks plain HTTP." },
    { "manager", "tls-key", CONF_PATH, AT(tls_key), NULL, 0, 0, 0, "Its private key (PEM)." },
    { "manager", "insecure", CONF_BOOL, AT(insecure), NULL, 0, 0, 0,
      "Allow plain HTTP on an address that others can reach." },
    { "manager", "state", CONF_PATH, AT(state_dir), NULL, 0, 0, 0,
      "Folder of the database, its key and the cluster's certificate authority." },
    { "manager", "database", CONF_STR, AT(database), NULL, 0, 0, 0,
      "Server of the database, postgresql://USER@HOST/NAME; none: a file in the state folder." },
    { "manager", "name", CONF_STR, AT(name), NULL, 0, 0, 0,
      "Name among several managers; none: that of the machine." },
    { "manager", "advertise", CONF_STR, AT(advertise), NULL, 0, 0, 0,
      "URL of the API as other machines reach it; none: made of listen." },
    { "manager", "scheduler-plugins", CONF_PATH, AT(scheduler_plugins), NULL, 0, 0, 0,
      "Folder of scheduler plug-ins, that resource groups may name." },
    { "manager", "log-level", CONF_STR, AT(log_level), "info", 0, 0, 0,
      "error, warning, info or debug." },
    { "api", "allow-origins", CONF_LIST, AT(allow_origins), NULL, 0, 0, 0,
      "Web pages that may use the API: https://console.example.org, ...; * is every page." },
    { "api", "trusted-proxies", CONF_LIST, AT(trusted_proxies), NULL, 0, 0, 0,
      "Addresses of proxies that are believed for whom they ask (X-Forwarded-For)." },
    { "api", "callback-networks", CONF_LIST, AT(callback_networks), NULL, 0, 0, 0,
      "Private networks that callback URLs and notifications may name: 10.20.0.0/16, ..." },
    { "api", "remembered-requests", CONF_INT, AT(remembered_requests), "4000000", 1000,
      INT64_C(1000000000), 0,
      "Changes of the last 15 minutes that are remembered, so that none is accepted twice." },
    { "apps", "ticket-lifetime", CONF_DURATION, AT(ticket_lifetime_usec), "1h", USEC_PER_SEC,
      7 * DAY_USEC, 0,
      "How long proxies may lead users to an app that they were let into, while the manager is "
      "away." },
    { "files", "max-size", CONF_SIZE, AT(transfer_limits.bytes_max), "100g", 0, INT64_MAX / 2, 0,
      "Bytes that one transfer of files into or out of a session may have; 0: any number." },
    { "files", "max-files", CONF_INT, AT(transfer_limits.files_max), "1000000", 0,
      INT64_C(1000000000), 0, "Files and folders that it may have; 0: any number." },
    { "auth", "password-min-length", CONF_INT, AT(passwords.min_length), "8", 8, 128, 0,
      "Characters that a new password must have." },
    { "auth", "password-classes", CONF_INT, AT(passwords.classes), "1", 1, 4, 0,
      "Of how many of lower case, upper case, digits and others a new password must have some." },
    { "auth", "max-password-age", CONF_DURATION, AT(passwords.max_age_usec), "forever",
      USEC_PER_SEC, KEPT_MAX_USEC, CONF_OR_FOREVER,
      "A password that is older must be changed before its user can log in." },
    { "signup", "enabled", CONF_BOOL, AT(signup.is_open), NULL, 0, 0, 0,
      "Whether anybody may make an account without an administrator." },
    { "signup", "domain", CONF_STR, AT(signup.domain), "default", 0, 0, 0,
      "Domain of the accounts." },
    { "signup", "projects", CONF_LIST, AT(signup.projects), "default", 0, 0, 0,
      "Projects that they are in." },
    { "signup", "policy", CONF_STR, AT(signup.policy), "default", 0, 0, 0,
      "Resource policy of their keypairs." },
    { "signup", "status", CONF_STR, AT(signup.status), "active", 0, 0, 0,
      "active, or before-verification: until an administrator sets them to active." },
    { "signup", "hook-command", CONF_LIST, AT(signup.command), NULL, 0, 0, 0,
      "Program and arguments that decide who may sign up; without a shell." },
    { "signup", "hook-user", CONF_STR, AT(signup.user), "nobody", 0, 0, 0,
      "As whom a manager that is root runs it." },
    { "signup", "hook-url", CONF_STR, AT(signup.url), NULL, 0, 0, CONF_SECRET,
      "URL that is asked instead: https://id.example.org/signup." },
    { "signup", "hook-timeout", CONF_DURATION, AT(signup.timeout_usec), "5s", USEC_PER_SEC,
      60 * USEC_PER_SEC, 0, "How long either may take." },
    { "link", "listen", CONF_LISTEN, AT(link), "127.0.0.1:8082", 0, 0, 0,
      "Address that agents connect to; always TLS." },
    { "link", "names", CONF_STR, AT(link_names), NULL, 0, 0, 0,
      "Host names and addresses by which agents know this machine, with commas between." },
    { "link", "advertise", CONF_STR, AT(link_advertise), NULL, 0, 0, 0,
      "HOST:PORT by which agents and other managers reach it; none: made of listen." },
    { "agents", "heartbeat", CONF_DURATION, AT(heartbeat_usec), "3s", USEC_PER_SEC,
      600 * USEC_PER_SEC, 0, "How often an agent reports what it has." },
    { "agents", "timeout", CONF_DURATION, AT(agent_timeout_usec), "10s", 2 * USEC_PER_SEC,
      86400 * USEC_PER_SEC, 0,
      "An agent that is silent for longer, and for two heartbeats at least, is lost." },
    { "network", "cluster-pool", CONF_STR, AT(cluster_pool), CLUSTER_NETWORK_POOL, 0, 0, 0,
      "Addresses of the networks of sessions between agents; none of them is used elsewhere." },
    { "sessions", "kill-grace", CONF_DURATION, AT(kill_grace_usec), "10s", USEC_PER_MSEC,
      3600 * USEC_PER_SEC, 0, "Time between SIGTERM and SIGKILL when a session is ended." },
    { "sessions", "attempts-age", CONF_DURATION, AT(attempts_age_usec), "30d", 60 * USEC_PER_SEC,
      INT64_C(3650) * 86400 * USEC_PER_SEC, 0,
      "How long after a session's end it is known what the scheduler made of it." },
    { "sessions", "attempts-sessions", CONF_INT, AT(attempts_sessions), "100000", 1,
      INT64_C(1000000000), 0, "Of how many of the latest sessions." },
    { "sessions", "max-memory", CONF_SIZE, AT(session_bytes_max), "1g", 1 << 20, INT64_C(1) << 50,
      0, "Memory of the manager that sessions may take until they end; more are refused." },
    { "sessions", "max-memory-per-user", CONF_SIZE, AT(user_session_bytes_max), "256m", 1 << 20,
      INT64_C(1) << 50, 0, "That the sessions of one user may take." },
    { "sessions", "max-array-size", CONF_INT, AT(array_size_max), "100000", 1, ARRAY_INDEX_MAX + 1,
      0, "Elements that one array may have." },
    { "sessions", "execution-timeout", CONF_DURATION, AT(execution_timeout_usec), "forever",
      USEC_PER_SEC, INT64_C(365) * 86400 * USEC_PER_SEC, CONF_OR_FOREVER,
      "How long code that is run in a session may take; then the session is ended." },
    { "serving", "prometheus", CONF_STR, AT(prometheus.url), NULL, 0, 0, 0,
      "URL of the Prometheus server that scaling rules of model services query; none: they cannot." },
    { "serving", "prometheus-ca", CONF_PATH, AT(prometheus.ca), NULL, 0, 0, 0,
      "Certificates that its own may be issued by (PEM); none: those of the system." },
    { "serving", "prometheus-token-file", CONF_PATH, AT(prometheus.token_file), NULL, 0, 0, 0,
      "File with a bearer token for it, read for each query." },
    { "serving", "prometheus-user", CONF_STR, AT(prometheus.user), NULL, 0, 0, 0,
      "User for it, by basic authentication." },
    { "serving", "prometheus-password-file", CONF_PATH, AT(prometheus.password_file), NULL, 0, 0, 0,
      "File with the password of that user, read for each query." },
    { "redis", "uri", CONF_STR, AT(redis.uri), NULL, 0, 0, CONF_SECRET,
      "Redis server that gets copies, redis://:PASSWORD@HOST:6379/0; none: memory alone." },
    { "redis", "password-file", CONF_PATH, AT(redis.password_file), NULL, 0, 0, 0,
      "File with its password, read for each connection." },
    { "redis", "sentinel-password-file", CONF_PATH, AT(redis.sentinel_password_file), NULL, 0, 0, 0,
      "File with the password of Sentinels, likewise." },
    { "redis", "ca", CONF_PATH, AT(redis.ca), NULL, 0, 0, 0,
      "Certificates that theirs may be issued by (PEM), for rediss://; none: those of the system." },
    { "etcd", "endpoints", CONF_LIST, AT(etcd.endpoints), NULL, 0, 0, 0,
      "URLs of an etcd that has the configuration tree, too: http://127.0.0.1:2379, ...; none: it "
      "is in the database alone." },
    { "etcd", "namespace", CONF_STR, AT(etcd.namespace), "local", 0, 0, 0,
      "The keys are below /sorna/NAMESPACE/ there." },
    { "etcd", "user", CONF_STR, AT(etcd.user), NULL, 0, 0, 0, "User of etcd, where it has users." },
    { "etcd", "password-file", CONF_PATH, AT(etcd.password_file), NULL, 0, 0, 0,
      "File with the password of that user, read for each login." },
    { "etcd", "tls-ca", CONF_PATH, AT(etcd.tls_ca), NULL, 0, 0, 0,
      "Certificates that etcd's may be issued by (PEM); none: those of the system." },
    { "etcd", "tls-cert", CONF_PATH, AT(etcd.tls_cert), NULL, 0, 0, 0,
      "Certificate chain that is shown to etcd (PEM), where it wants one." },
    { "etcd", "tls-key", CONF_PATH, AT(etcd.tls_key), NULL, 0, 0, 0, "Its private key (PEM)." },
    { "retention", "sessions", CONF_DURATION, AT(retention_usec[RETENTION_SESSIONS]), "forever",
      DAY_USEC, KEPT_MAX_USEC, CONF_OR_FOREVER,
      "How long after its end a session is kept, with all that hangs on it." },
    { "retention", "history", CONF_DURATION, AT(retention_usec[RETENTION_HISTORY]), "forever",
      DAY_USEC, KEPT_MAX_USEC, CONF_OR_FOREVER,
      "How long after a session's end its changes of status are kept." },
    { "retention", "usage", CONF_DURATION, AT(retention_usec[RETENTION_USAGE]), "forever",
      366 * DAY_USEC, KEPT_MAX_USEC, CONF_OR_FOREVER,
      "How long what removed sessions held is kept for fair share and accounting." },
    { "retention", "agent-history", CONF_DURATION, AT(retention_usec[RETENTION_AGENT_HISTORY]),
      "365d", DAY_USEC, KEPT_MAX_USEC, CONF_OR_FOREVER,
      "How long changes of the status of agents are kept." },
    { "retention", "series", CONF_DURATION, AT(retention_usec[RETENTION_SERIES]), "31d", DAY_USEC,
      KEPT_MAX_USEC, CONF_OR_FOREVER, "How long time series of use are kept." },
    { "retention", "audit-log", CONF_DURATION, AT(retention_usec[RETENTION_AUDIT_LOG]), "90d",
      DAY_USEC, KEPT_MAX_USEC, CONF_OR_FOREVER,
      "How long entries of the audit log are kept; see the manual for how many at most." },
    { "retention", "error-logs", CONF_DURATION, AT(retention_usec[RETENTION_ERROR_LOGS]), "90d",
      DAY_USEC, KEPT_MAX_USEC, CONF_OR_FOREVER,
      "How long errors that clients reported are kept; the last 200 of a user." },
    { "retention", "events", CONF_DURATION, AT(retention_usec[RETENTION_EVENTS]), "7d", DAY_USEC,
      KEPT_MAX_USEC, CONF_OR_FOREVER,
      "How long events of sessions are kept for streams that go on; a million at most." },
    { "metrics", "listen", CONF_STR, AT(metrics_listen), "127.0.0.1:8083", 0, 0, 0,
      "Address of GET /metrics for Prometheus; off: none." },
    { "metrics", "tls-cert", CONF_PATH, AT(metrics_tls_cert), NULL, 0, 0, 0,
      "Its certificate chain (PEM); without one it is plain HTTP." },
    { "metrics", "tls-key", CONF_PATH, AT(metrics_tls_key), NULL, 0, 0, 0,
      "And private key (PEM)." },
    { "metrics", "insecure", CONF_BOOL, AT(metrics_insecure), NULL, 0, 0, 0,
      "Allow plain HTTP on an address that others can reach." },
    CONF_TABLE_END,
};

/* systemd names the directory; else it is part of the state of all programs. */
static char *manager_conf_default_state_dir(void)
{
    const char *given = getenv("STATE_DIRECTORY");
    AQ_CLEANUP(aq_freep) char *base = NULL;

    if (given && given[0] == '/')
        return aq_strndup(given, strcspn(given, ":"));
    base = fs_state_dir();
    return aq_format("%s/manager", base);
}

int manager_conf_load(const char *file, struct manager_conf *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *found = file ? NULL : conf_default_file("manager");
    struct manager_conf conf = { 0 };
    int r = conf_load(manager_conf_items, file ? file : found, !file, &conf, err);

    if (r < 0)
        return r;
    if (conf.database && !conf.database[0]) /* so that a variable can take it back */
        free(AQ_TAKE(conf.database));
    if (!conf.state_dir)
        conf.state_dir = manager_conf_default_state_dir();
    *ret = conf;
    return 0;
}

void manager_conf_done(struct manager_conf *conf)
{
    conf_done(manager_conf_items, conf);
}
