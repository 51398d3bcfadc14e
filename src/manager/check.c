/* SPDX-License-Identifier: Apache-2.0 */
/* Does the machine have what a manager needs? For "aliquot doctor". */
#include "manager/check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "check/machine.h"
#include "check/port.h"
#include "link/pki.h"
#include "store/info.h"

#define OWNER "aliquot-manager"
#define REDIS_ANSWER_MSEC 6000 /* more than a server may take to answer */

static void manager_check_state(void *data, struct finding *ret)
{
    const struct manager_conf *conf = data;

    machine_check_folder(conf->state_dir, OWNER, ret);
}

/* The keys of the cluster, and the address of its database with a password perhaps. */
static void manager_check_keys(void *data, struct finding *ret)
{
    static const char *const files[] = { "aliquot.db.key", "ca/ca.key", "database" };
    const struct manager_conf *conf = data;
    bool has_keys = false; /* not before the first start */
    struct stat st;

    for (size_t i = 0; i < AQ_COUNT(files); i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", conf->state_dir, files[i]);

        if (stat(path, &st) < 0)
            continue;
        has_keys = true;
        if (!(st.st_mode & 077))
            continue;
        finding_say(ret, CHECK_WARNING, "others may read %s", path);
        finding_mean(ret, "who has it reads all secrets of the cluster, or is let in as any agent");
        finding_mend(ret, "chmod 600 %s", path);
        return;
    }
    if (has_keys)
        finding_say(ret, CHECK_OK, "for the manager's user alone");
}

static void manager_check_api(void *data, struct finding *ret)
{
    const struct manager_conf *conf = data;

    port_check(conf->listen.host, conf->listen.port, OWNER, OWNER " --listen ADDRESS:PORT", ret);
}

static void manager_check_link(void *data, struct finding *ret)
{
    const struct manager_conf *conf = data;

    port_check(conf->link.host, conf->link.port, OWNER, OWNER " --link ADDRESS:PORT", ret);
}

static void manager_check_certificate(void *data, struct finding *ret)
{
    const struct manager_conf *conf = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct pki_cert cert;
    struct aq_error err = { 0 };

    if (!conf->tls_cert)
        return; /* plain HTTP, as is usual on loopback */
    if (fs_read(AT_FDCWD, conf->tls_cert, PKI_PEM_MAX, &text, &err) == 0
        && pki_cert_read(text.data, &cert, &err) == 0) {
        machine_judge_certificate(conf->tls_cert, cert.not_after_usec, clock_realtime_usec(),
                                  "renew it where it came from; then: systemctl restart " OWNER,
                                  ret);
        return;
    }
    finding_say(ret, CHECK_MISSING, "%s", err.text);
    finding_mean(ret, OWNER " does not start");
    finding_mend(ret, "set tls-cert in [manager] of manager.toml");
}

static void manager_check_database(void *data, struct finding *ret)
{
    const struct manager_conf *conf = data;
    AQ_CLEANUP(store_info_done) struct store_info info = { .risks = STRBUF_INIT };
    struct aq_error err = { 0 };

    if (!conf->database)
        return; /* a file in the state folder */
    if (store_info_read(conf->database, &info, &err) < 0) {
        finding_say(ret, CHECK_MISSING, "%s", err.text);
        finding_mean(ret, OWNER " does not start, or refuses changes");
        finding_mend(ret, "set database in [manager] of manager.toml, or start the server");
        return;
    }
    if (info.risks.len == 0) {
        finding_say(ret, CHECK_OK, "%s", info.engine);
        return;
    }
    finding_say(ret, CHECK_WARNING, "%s, but %.*s", info.engine,
                (int)strcspn(info.risks.data, "\n"), info.risks.data);
    finding_mend(ret, "change it on the server; 'aliquot admin db info' has all");
}

static void manager_check_prometheus(void *data, struct finding *ret)
{
    const struct manager_conf *conf = data;
    struct aq_error err = { 0 };

    if (!conf->prometheus.url || !*conf->prometheus.url)
        return;
    if (serving_prometheus_try(&conf->prometheus, &err) == 0) {
        finding_say(ret, CHECK_OK, "%s answers", conf->prometheus.url);
        return;
    }
    finding_say(ret, CHECK_WARNING, "%s", err.text);
    finding_mean(ret, "scaling rules of model services that query it have no value");
    finding_mend(
        ret,
        "set prometheus in [serving] of manager.toml, and prometheus-ca where the site's own CA "
        "signed its certificate; or start the server");
}

static void manager_check_redis(void *data, struct finding *ret)
{
    const struct manager_conf *conf = data;
    struct aq_error err = { 0 };

    if (!conf->redis.uri || !*conf->redis.uri)
        return;
    if (redis_client_try(&conf->redis, REDIS_ANSWER_MSEC, &err) == 0) {
        finding_say(ret, CHECK_OK, "the Redis server takes what is written");
        return;
    }
    finding_say(ret, CHECK_WARNING, "Redis: %s", err.text);
    finding_mean(
        ret, "tools find no live figures there; the next manager counts requests of keys from 0");
    finding_mend(ret, "set uri and password-file in [redis] of manager.toml, or start the server");
}

static void manager_check_etcd(void *data, struct finding *ret)
{
    const struct manager_conf *conf = data;
    struct aq_error err = { 0 };
    int r;

    if (!conf->etcd.endpoints.count)
        return;
    r = etcd_try(&conf->etcd, &err);
    if (r == 0) {
        finding_say(ret, CHECK_OK, "%s answers%s", conf->etcd.endpoints.items[0],
                    conf->etcd.endpoints.count > 1 ? ", and the others" : "");
        return;
    }
    finding_say(ret, CHECK_WARNING, "%s", err.text);
    finding_mean(ret,
                 r == -EAGAIN
                     ? "the other endpoints answer; if they fail, too, changes of the "
                       "configuration tree are not carried between etcd and the database"
                     : "changes of the configuration tree are not carried between etcd and the "
                       "database");
    finding_mend(ret, "set endpoints, user and tls-ca in [etcd] of manager.toml, or start etcd");
}

static void manager_check_clock(void *data, struct finding *ret)
{
    (void)data;
    machine_check_clock(ret);
}

static void manager_check_files(void *data, struct finding *ret)
{
    (void)data;
    machine_check_files(ret);
}

static const struct check manager_checks[] = {
    { "manager.state", "manager", "state folder", manager_check_state },
    { "manager.keys", "manager", "keys of the cluster", manager_check_keys },
    { "manager.api", "manager", "port of the API", manager_check_api },
    { "manager.link", "manager", "port for agents", manager_check_link },
    { "manager.certificate", "manager", "certificate", manager_check_certificate },
    { "manager.database", "manager", "database", manager_check_database },
    { "manager.prometheus", "manager", "Prometheus", manager_check_prometheus },
    { "manager.redis", "manager", "Redis", manager_check_redis },
    { "manager.etcd", "manager", "etcd", manager_check_etcd },
    { "manager.files", "manager", "open files", manager_check_files },
    { "manager.clock", "manager", "clock", manager_check_clock },
    { .id = NULL },
};

int manager_check(const struct manager_conf *conf, char *const *parts, int count,
                  struct aq_error *err)
{
    return checks_run(manager_checks, (void *)(uintptr_t)conf, parts, count, stdout, err);
}
