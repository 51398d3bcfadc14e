/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_cluster.c - see doctor_cluster.h */
#include "cli/admin/doctor_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/admin/doctor.h"

#define ANSWER_SEC "5"
#define DIFFERENCE_SEC 5 /* of the clocks; a smaller one is not reported */
#define REFUSED_SEC 900  /* the manager refuses requests beyond this (http/sign.h) */

/* ---- request ---- */

static void doctor_set(struct cli_config *config, enum cli_setting setting, const char *value)
{
    free(config->values[setting]);
    config->values[setting] = aq_strdup(value);
}

static int doctor_ask_health(struct doctor_cluster *c)
{
    struct cli *cli = c->cli;
    int r = cli_config_load(&cli->config, cli->globals.endpoint, cli->globals.profile, &c->err);

    if (r < 0)
        return r;
    if (!cli_config_get(&cli->config, SETTING_ACCESS_KEY))
        return -ENOKEY;
    doctor_set(&cli->config, SETTING_CONNECT_TIMEOUT, ANSWER_SEC);
    doctor_set(&cli->config, SETTING_READ_TIMEOUT, ANSWER_SEC);
    c->asked_usec = clock_realtime_usec();
    r = cli_fetch(cli, METHOD_GET, "/aliquot/v1/health", NULL, &c->reply, &c->err);
    c->answered_usec = clock_realtime_usec();
    return r;
}

/* ---- checks ---- */

static void doctor_check_reach(void *data, struct finding *ret)
{
    struct doctor_cluster *c = data;
    int r = doctor_ask_health(c);
    const char *endpoint;

    if (r == -ENOKEY) {
        finding_say(ret, CHECK_ABSENT, "you are not logged in to a cluster");
        finding_mend(ret, "aliquot login");
        return;
    }
    endpoint = cli_config_get(&c->cli->config, SETTING_ENDPOINT);
    c->is_reached = r == 0 && c->reply.status == 200;
    if (c->is_reached) {
        c->health = json_loadb(c->reply.body.data, c->reply.body.len, 0, NULL);
        finding_say(ret, CHECK_OK, "%s answers", endpoint);
        return;
    }
    if (r == 0)
        finding_say(ret, CHECK_MISSING, "%s answers with status %d, which a manager does not",
                    endpoint, c->reply.status);
    else
        finding_say(ret, CHECK_MISSING, "%s", c->err.text);
    finding_mean(ret, "no command that needs the cluster works");
    finding_mend(ret, "aliquot config show; on its machine: aliquot doctor manager, and start it");
}

static void doctor_check_version(void *data, struct finding *ret)
{
    const struct doctor_cluster *c = data;
    const char *version = json_string_value(json_object_get(c->health, "version"));

    if (c->is_reached && version && strcmp(version, ALIQUOT_VERSION) == 0) {
        finding_say(ret, CHECK_OK, "manager and command line are %s", version);
    } else if (c->is_reached) {
        finding_say(ret, CHECK_WARNING, "the version of the manager is %s, of this program %s",
                    version ? version : "unknown", ALIQUOT_VERSION);
        finding_mean(ret, "features of the newer one fail or have no effect");
        finding_mend(ret, "apt install --only-upgrade aliquot");
    }
}

/* The manager's clock, from the "Date" header of its reply; 0 = without one. */
static int64_t doctor_read_date(const struct client_reply *reply)
{
    const char *at = strstr(reply->headers.data, "Date: ");
    char text[64];
    int64_t usec;

    if (!at)
        return 0;
    at += strlen("Date: ");
    (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\r\n"), at);
    return clock_parse_date(text, &usec) == 0 ? usec : 0;
}

static void doctor_check_difference(void *data, struct finding *ret)
{
    const struct doctor_cluster *c = data;
    int64_t theirs = c->is_reached ? doctor_read_date(&c->reply) : 0;
    int64_t sec = theirs > c->answered_usec ? (theirs - c->answered_usec) / USEC_PER_SEC
                  : theirs < c->asked_usec  ? (c->asked_usec - theirs) / USEC_PER_SEC
                                            : 0;

    if (!theirs)
        return;
    if (sec < DIFFERENCE_SEC) {
        finding_say(ret, CHECK_OK, "the clocks of this machine and the manager's agree");
        return;
    }
    finding_say(ret, sec < REFUSED_SEC ? CHECK_WARNING : CHECK_MISSING,
                "the clock of this machine is %lld seconds %s the manager's", (long long)sec,
                theirs > c->asked_usec ? "behind" : "ahead of");
    finding_mean(ret, "the manager refuses requests when the clocks differ by more than %d seconds",
                 REFUSED_SEC);
    finding_mend(ret, "apt install chrony, on the machine whose clock is wrong; chronyc makestep");
}

static void doctor_check_login(void *data, struct finding *ret)
{
    struct doctor_cluster *c = data;
    struct aq_error err = { 0 };

    if (!c->is_reached)
        return;
    if (cli_call(c->cli, METHOD_GET, "/auth/role", NULL, NULL, &err) == 0) {
        finding_say(ret, CHECK_OK, "the manager accepts the keypair %s",
                    cli_config_get(&c->cli->config, SETTING_ACCESS_KEY));
        return;
    }
    finding_say(ret, CHECK_MISSING, "%s", err.text);
    finding_mean(ret, "requests of this user are refused");
    finding_mend(ret, "aliquot login");
}

static const struct check doctor_cluster_checks[] = {
    { "cluster.manager", "cluster", "manager", doctor_check_reach },
    { "cluster.version", "cluster", "version", doctor_check_version },
    { "cluster.database", "cluster", "database", doctor_check_database },
    { "cluster.redis", "cluster", "Redis", doctor_check_redis },
    { "cluster.etcd", "cluster", "etcd", doctor_check_etcd },
    { "cluster.status", "cluster", "status", doctor_check_status },
    { "cluster.restore", "cluster", "restore", doctor_check_restore },
    { "cluster.agents", "cluster", "agents", doctor_check_agents },
    { "cluster.network", "cluster", "network between agents", doctor_check_network },
    { "cluster.managers", "cluster", "managers", doctor_check_managers },
    { "cluster.services", "cluster", "services", doctor_check_services },
    { "cluster.clock", "cluster", "clock", doctor_check_difference },
    { "cluster.login", "cluster", "login", doctor_check_login },
    { .id = NULL },
};

int doctor_look_at_cluster(struct cli *cli, json_t *findings, struct aq_error *err)
{
    struct doctor_cluster cluster = { .cli = cli, .reply = CLIENT_REPLY_INIT };
    char *lines = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&lines, &size);
    int r;

    if (!out)
        return aq_fail_errno(err, "open a stream in memory");
    r = checks_run(doctor_cluster_checks, &cluster, NULL, 0, out, err);
    (void)fclose(out);
    if (r == 0)
        doctor_add_lines(findings, lines);
    free(lines);
    json_decref(cluster.health);
    client_reply_done(&cluster.reply);
    return r;
}
