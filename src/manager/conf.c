/* SPDX-License-Identifier: Apache-2.0 */
/* The manager's settings: manager.toml, ALIQUOT_* and options. */
#include "manager/conf.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"

#define AT(member) offsetof(struct manager_conf, member)

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
    { "manager", "scheduler-plugins", CONF_PATH, AT(scheduler_plugins), NULL, 0, 0, 0,
      "Folder of scheduler plug-ins, that resource groups may name." },
    { "manager", "log-level", CONF_STR, AT(log_level), "info", 0, 0, 0,
      "error, warning, info or debug." },
    { "api", "allow-origins", CONF_LIST, AT(allow_origins), NULL, 0, 0, 0,
      "Web pages that may use the API: https://console.example.org, ...; * is every page." },
    { "api", "trusted-proxies", CONF_LIST, AT(trusted_proxies), NULL, 0, 0, 0,
      "Addresses of proxies that are believed for whom they ask (X-Forwarded-For)." },
    { "link", "listen", CONF_LISTEN, AT(link), "127.0.0.1:8082", 0, 0, 0,
      "Address that agents connect to; always TLS." },
    { "link", "names", CONF_STR, AT(link_names), NULL, 0, 0, 0,
      "Host names and addresses by which agents know this machine, with commas between." },
    { "agents", "heartbeat", CONF_DURATION, AT(heartbeat_usec), "3s", USEC_PER_SEC,
      600 * USEC_PER_SEC, 0, "How often an agent reports what it has." },
    { "agents", "timeout", CONF_DURATION, AT(agent_timeout_usec), "40s", 2 * USEC_PER_SEC,
      86400 * USEC_PER_SEC, 0, "An agent that is silent for longer is lost." },
    { "sessions", "kill-grace", CONF_DURATION, AT(kill_grace_usec), "10s", USEC_PER_MSEC,
      3600 * USEC_PER_SEC, 0, "Time between SIGTERM and SIGKILL when a session is ended." },
    { "sessions", "attempts-age", CONF_DURATION, AT(attempts_age_usec), "30d", 60 * USEC_PER_SEC,
      INT64_C(3650) * 86400 * USEC_PER_SEC, 0,
      "How long after a session's end it is known what the scheduler made of it." },
    { "sessions", "attempts-sessions", CONF_INT, AT(attempts_sessions), "100000", 1,
      INT64_C(1000000000), 0, "Of how many of the latest sessions." },
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
        return strndup(given, strcspn(given, ":"));
    base = fs_state_dir();
    return base ? aq_format("%s/manager", base) : NULL;
}

int manager_conf_load(const char *file, struct manager_conf *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *found = file ? NULL : conf_default_file("manager");
    struct manager_conf conf = { 0 };
    int r = conf_load(manager_conf_items, file ? file : found, !file, &conf, err);

    if (r < 0)
        return r;
    if (!conf.state_dir && !(conf.state_dir = manager_conf_default_state_dir())) {
        manager_conf_done(&conf);
        return aq_fail_oom(err);
    }
    *ret = conf;
    return 0;
}

void manager_conf_done(struct manager_conf *conf)
{
    conf_done(manager_conf_items, conf);
}
