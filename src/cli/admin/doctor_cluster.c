/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster as it is seen from here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "check/check.h"
#include "cli/client.h"
#include "cli/admin/doctor.h"
#include "cli/output/output.h"

#define ANSWER_SEC "5"
#define DIFFERENCE_SEC 5 /* from here on it is said */
#define REFUSED_SEC 900  /* from here on requests are refused (http/sign.h) */

struct doctor_cluster {
    struct cli *cli;
    bool has_login, is_reached;
    struct aq_error err; /* if it was not reached */
    struct client_reply health;
    int64_t asked_usec, answered_usec;
};

/* ---- asking ---- */

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
    c->has_login = cli_config_get(&cli->config, SETTING_ACCESS_KEY);
    if (!c->has_login)
        return -ENOKEY;
    doctor_set(&cli->config, SETTING_CONNECT_TIMEOUT, ANSWER_SEC);
    doctor_set(&cli->config, SETTING_READ_TIMEOUT, ANSWER_SEC);
    c->asked_usec = clock_realtime_usec();
    r = cli_fetch(cli, METHOD_GET, "/aliquot/v1/health", NULL, &c->health, &c->err);
    c->answered_usec = clock_realtime_usec();
    return r;
}

/* ---- checks ---- */

static void doctor_check_reach(void *data, struct finding *ret)
{
    struct doctor_cluster *c = data;
    const char *endpoint = cli_config_get(&c->cli->config, SETTING_ENDPOINT);
    int r = doctor_ask_health(c);

    if (r == -ENOKEY) {
        finding_say(ret, CHECK_ABSENT, "you are not logged in to a cluster");
        finding_mend(ret, "aliquot login");
        return;
    }
    endpoint = cli_config_get(&c->cli->config, SETTING_ENDPOINT);
    c->is_reached = r == 0 && c->health.status == 200;
    if (c->is_reached) {
        finding_say(ret, CHECK_OK, "%s answers", endpoint);
        return;
    }
    if (r == 0)
        finding_say(ret, CHECK_MISSING, "%s answers, but not as a manager (status %d)", endpoint,
                    c->health.status);
    else
        finding_say(ret, CHECK_MISSING, "%s", c->err.text);
    finding_mean(ret, "no command that needs the cluster works");
    finding_mend(ret, "aliquot config show; on its machine: aliquot doctor manager, and start it");
}

static void doctor_check_version(void *data, struct finding *ret)
{
    struct doctor_cluster *c = data;
    json_t *health = json_loadb(c->health.body.data, c->health.body.len, 0, NULL);
    const char *version = json_string_value(json_object_get(health, "version"));

    if (c->is_reached && version && strcmp(version, ALIQUOT_VERSION) == 0) {
        finding_say(ret, CHECK_OK, "manager and command line are %s", version);
    } else if (c->is_reached) {
        finding_say(ret, CHECK_WARNING, "the manager is %s, this program %s",
                    version ? version : "of an unknown version", ALIQUOT_VERSION);
        finding_mean(ret, "what is newer in one of them the other does not know");
        finding_mend(ret, "apt install --only-upgrade aliquot");
    }
    json_decref(health);
}

/* A text of an answer of the manager, whose version may lack it. */
static const char *doctor_text(const json_t *item, const char *name)
{
    const char *text = json_string_value(json_object_get(item, name));

    return text ? text : "";
}

static void doctor_check_database(void *data, struct finding *ret)
{
    const struct doctor_cluster *c = data;
    json_t *health = json_loadb(c->health.body.data, c->health.body.len, 0, NULL);
    const json_t *since = json_object_get(health, "database_away_since");

    if (c->is_reached && json_is_string(since)) {
        finding_say(ret, CHECK_MISSING, "the manager cannot reach its database since %s",
                    json_string_value(since));
        finding_mean(ret, "it answers what is in memory; changes are refused, and nothing starts");
        finding_mend(ret, "on the manager's machine: aliquot doctor manager; start the database "
                          "server");
    } else if (c->is_reached && since) {
        finding_say(ret, CHECK_OK, "the manager reaches its database");
    }
    json_decref(health);
}

static void doctor_check_redis(void *data, struct finding *ret)
{
    const struct doctor_cluster *c = data;
    json_t *health = json_loadb(c->health.body.data, c->health.body.len, 0, NULL);
    const json_t *since = json_object_get(health, "redis_away_since");

    if (c->is_reached && json_is_string(since)) {
        finding_say(ret, CHECK_WARNING,
                    "the manager's Redis server has not accepted writes since %s",
                    json_string_value(since));
        finding_mean(ret, "sessions are not affected; tools find no live figures in Redis");
        finding_mend(ret,
                     "on the manager's machine: aliquot doctor manager; start the Redis server");
    }
    json_decref(health);
}

static void doctor_check_etcd(void *data, struct finding *ret)
{
    const struct doctor_cluster *c = data;
    json_t *health = json_loadb(c->health.body.data, c->health.body.len, 0, NULL);
    const json_t *since = json_object_get(health, "etcd_away_since");

    if (c->is_reached && json_is_string(since)) {
        finding_say(ret, CHECK_WARNING,
                    "etcd and the configuration tree are not in agreement since %s",
                    json_string_value(since));
        finding_mean(ret, "the manager uses the tree in its database; changes are not carried to "
                          "or from etcd");
        finding_mend(ret, "on the manager's machine: aliquot doctor manager; start etcd");
    }
    json_decref(health);
}

static void doctor_check_status(void *data, struct finding *ret)
{
    const struct doctor_cluster *c = data;
    json_t *health = json_loadb(c->health.body.data, c->health.body.len, 0, NULL);
    const char *status = json_string_value(json_object_get(health, "status"));

    if (c->is_reached && status && strcmp(status, "frozen") == 0) {
        finding_say(ret, CHECK_WARNING, "an administrator has frozen the cluster");
        finding_mean(ret, "sessions cannot be started, ended or changed; those that run go on");
        finding_mend(ret, "aliquot announcement, which may say why; a superadmin ends it: aliquot "
                          "admin unfreeze");
    } else if (c->is_reached) {
        finding_say(ret, CHECK_OK, "sessions can be started and ended");
    }
    json_decref(health);
}

/* Containers that are newer than the backup; -1 = not known: only superadmins may list them. */
static int doctor_count_newer(struct doctor_cluster *c)
{
    json_t *answer = NULL;
    int count = 0;
    const json_t *item;
    size_t i;

    if (cli_call(c->cli, METHOD_GET, "/aliquot/v1/orphans", NULL, &answer, NULL) < 0)
        return -1;
    json_array_foreach(json_object_get(answer, "items"), i, item)
        count += (int)json_integer_value(json_object_get(item, "containers"));
    json_decref(answer);
    return count;
}

/* True: the health names a sign that the database is older than what agents have seen. */
static bool doctor_find_older_database(const json_t *health, struct finding *ret)
{
    json_int_t ahead = json_integer_value(json_object_get(health, "epoch_ahead"));
    json_int_t lost = json_integer_value(json_object_get(health, "lost_commits"));

    if (ahead) {
        finding_say(ret, CHECK_MISSING,
                    "agents follow epoch %lld and refuse this manager, which leads epoch %lld",
                    (long long)ahead,
                    (long long)json_integer_value(json_object_get(health, "epoch")));
        finding_mean(ret, "the database is an older copy, or another manager leads");
        finding_mend(ret, "if the database was put back: stop all managers; aliquot admin db "
                          "mark-restored; start them");
    } else if (lost) {
        finding_say(ret, CHECK_WARNING,
                    "the database lacks %lld commits of epoch %lld that agents have seen",
                    (long long)lost,
                    (long long)json_integer_value(json_object_get(health, "lost_commits_epoch")));
        finding_mean(ret, "what was acknowledged in them is lost; containers that they started are "
                          "kept");
        finding_mend(ret, "aliquot admin orphan ls; aliquot admin orphan adopt --all, or end");
    }
    return ahead || lost;
}

static void doctor_check_restore(void *data, struct finding *ret)
{
    struct doctor_cluster *c = data;
    json_t *health = json_loadb(c->health.body.data, c->health.body.len, 0, NULL);
    const char *made = json_string_value(json_object_get(health, "backup_made_at"));
    int newer = c->is_reached && made ? doctor_count_newer(c) : -1;

    if (c->is_reached && made) {
        finding_say(ret, CHECK_MISSING,
                    "the cluster was restored from a backup of %s, and the "
                    "restore is not finished",
                    made);
        if (newer >= 0)
            finding_mean(ret,
                         "no session starts; %d containers on agents are newer than the "
                         "backup and keep their cores, memory and GPUs",
                         newer);
        else
            finding_mean(ret, "no session starts");
        finding_mend(ret, "%saliquot admin orphan finish",
                     newer ? "aliquot admin orphan ls; aliquot admin orphan adopt --all, or end; "
                           : "");
    } else if (c->is_reached && !doctor_find_older_database(health, ret)) {
        finding_say(ret, CHECK_OK, "no unfinished restore");
    }
    json_decref(health);
}

/* ---- contacts ---- */

/* "12 s ago" */
static void doctor_write_heard(const json_t *item, struct strbuf *out)
{
    const char *text = json_string_value(json_object_get(item, "last_contact"));
    int64_t usec;

    if (!text || clock_parse_date(text, &usec) < 0) {
        strbuf_adds(out, "not heard since the manager's start");
        return;
    }
    strbuf_adds(out, "heard ");
    cell_write_span(AQ_MAX(clock_realtime_usec() - usec, 0), out);
    strbuf_adds(out, " ago");
}

/* Agents are away unless they are connected and ALIVE; services have no status. */
static bool doctor_is_away(const json_t *item)
{
    const char *status = json_string_value(json_object_get(item, "status"));

    return !json_is_true(json_object_get(item, "connected"))
           || (status && strcmp(status, "ALIVE") != 0);
}

/* List the contacts that are away, or all if none is. Returns how many are away; -1 = this user may
 * not see them.
 */
static int doctor_list_contacts(struct doctor_cluster *c, const char *path, const char *noun,
                                struct strbuf *out, size_t *ret_count)
{
    json_t *answer = NULL, *items;
    const json_t *item;
    int away = 0;
    size_t i;

    if (!c->is_reached || cli_call(c->cli, METHOD_GET, path, NULL, &answer, NULL) < 0)
        return -1;
    items = json_object_get(answer, "items");
    *ret_count = json_array_size(items);
    json_array_foreach(items, i, item)
        away += doctor_is_away(item);
    json_array_foreach(items, i, item) {
        const char *kind = doctor_text(item, "kind");
        const char *name = doctor_text(item, noun ? "id" : "name");
        const char *status = json_string_value(json_object_get(item, "status"));

        if ((away && !doctor_is_away(item)) || out->len > 200)
            continue;
        strbuf_addf(out, "%s%s '%s' ", out->len ? ", " : "", noun ? noun : kind, name);
        if (doctor_is_away(item))
            strbuf_addf(out, "(%s) ",
                        status && strcmp(status, "ALIVE") != 0 ? status : "not connected");
        doctor_write_heard(item, out);
    }
    json_decref(answer);
    return away;
}

static void doctor_check_agents(void *data, struct finding *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    size_t count = 0;
    int away = doctor_list_contacts(data, "/aliquot/v1/agents?limit=1000", "agent", &list, &count);

    if (away < 0)
        return;
    if (away == 0) {
        finding_say(ret, CHECK_OK, "%zu connected%s%s", count,
                    count ? ": " : "; no agent has joined", count ? list.data : "");
        return;
    }
    finding_say(ret, CHECK_WARNING, "%d of %zu agents lost or not connected: %s", away, count,
                list.data);
    finding_mean(ret, "no session starts there; running sessions continue if the machine does");
    finding_mend(ret, "aliquot agent ls; on the agent's machine: aliquot doctor agent; "
                      "systemctl restart aliquot-agent");
}

/* "a1 does not reach a2 (192.0.2.2:51871/udp)" for each pair; how many there are. */
static size_t doctor_list_unreached(const json_t *items, struct strbuf *out)
{
    const json_t *item, *id, *other;
    size_t i, k, n, count = 0;

    json_array_foreach(items, i, item) {
        const json_t *network = json_object_get(item, "network");

        json_array_foreach(json_object_get(network, "unreachable"), k, id) {
            const json_t *endpoint = NULL;

            json_array_foreach(items, n, other)
                if (json_equal(json_object_get(other, "id"), id))
                    endpoint = json_object_get(json_object_get(other, "network"), "endpoint");
            count++;
            if (out->len < 200)
                strbuf_addf(out, "%sagent '%s' does not reach '%s'%s%s%s", out->len ? ", " : "",
                            json_string_value(json_object_get(item, "id")), json_string_value(id),
                            endpoint ? " (" : "", endpoint ? json_string_value(endpoint) : "",
                            endpoint ? "/udp)" : "");
        }
    }
    return count;
}

/* "agent 'a3': no /dev/net/tun" for each that has no network between nodes. */
static size_t doctor_list_without_network(const json_t *items, struct strbuf *out)
{
    const json_t *item;
    size_t i, count = 0;

    json_array_foreach(items, i, item) {
        const json_t *network = json_object_get(item, "network");
        const char *mode = json_string_value(json_object_get(network, "mode"));
        const char *note = json_string_value(json_object_get(network, "note"));

        if (!mode || strcmp(mode, "none") != 0)
            continue;
        count++;
        if (out->len < 200)
            strbuf_addf(out, "%sagent '%s'%s%s", out->len ? ", " : "",
                        json_string_value(json_object_get(item, "id")), note ? ": " : "",
                        note ? note : "");
    }
    return count;
}

static void doctor_check_network(void *data, struct finding *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    struct doctor_cluster *c = data;
    json_auto_t *answer = NULL;
    const json_t *items;
    size_t count;

    if (!c->is_reached
        || cli_call(c->cli, METHOD_GET, "/aliquot/v1/agents?limit=1000", NULL, &answer, NULL) < 0)
        return;
    items = json_object_get(answer, "items");
    if (json_array_size(items) < 2) {
        finding_say(ret, CHECK_OK, "not needed: the cluster has fewer than two agents");
        return;
    }
    if ((count = doctor_list_unreached(items, &list)) != 0) {
        finding_say(ret, CHECK_WARNING, "%zu ways between agents are closed: %s", count, list.data);
        finding_mean(ret, "no session with several kernels is placed on both");
        finding_mend(ret, "open that UDP port between the nodes; it is cluster-port in agent.toml");
        return;
    }
    if ((count = doctor_list_without_network(items, &list)) != 0) {
        finding_say(ret, CHECK_WARNING, "%zu of %zu agents have none: %s", count,
                    json_array_size(items), list.data);
        finding_mean(ret, "kernels of one session are not on these and on other agents");
        finding_mend(ret, "on the agents' machines: aliquot doctor containers; apt install "
                          "wireguard-tools wireguard-go");
        return;
    }
    finding_say(ret, CHECK_OK, "agents reach each other");
}

static void doctor_check_services(void *data, struct finding *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    size_t count = 0;
    int away = doctor_list_contacts(data, "/aliquot/v1/services", NULL, &list, &count);

    if (away < 0)
        return;
    if (away == 0) {
        finding_say(ret, CHECK_OK, "%s",
                    count ? list.data : "no storage host, proxy or web server has connected");
        return;
    }
    finding_say(ret, CHECK_WARNING, "%d of %zu services not connected: %s", away, count, list.data);
    finding_mean(ret, "folders, apps or web pages that they serve cannot be reached");
    finding_mend(ret, "on their machines: systemctl restart aliquot-storage, aliquot-proxy or "
                      "aliquot-web");
}

/* The standbys that are not connected, and the managers of another version than the leader. */
static size_t doctor_list_bad_managers(const json_t *items, struct strbuf *out)
{
    const char *version = NULL;
    const json_t *item;
    size_t i, count = 0;

    json_array_foreach(items, i, item)
        if (strcmp(doctor_text(item, "role"), "leader") == 0)
            version = json_string_value(json_object_get(item, "version"));
    json_array_foreach(items, i, item) {
        const char *own = json_string_value(json_object_get(item, "version"));
        bool is_away = !json_is_true(json_object_get(item, "connected"));
        bool is_other = version && own && strcmp(version, own) != 0;

        if (!is_away && !is_other)
            continue;
        count++;
        if (out->len > 200)
            continue;
        strbuf_addf(out, "%s'%s' (", out->len ? ", " : "", doctor_text(item, "name"));
        if (is_away)
            strbuf_adds(out, "not connected");
        if (is_other)
            strbuf_addf(out, "%sof version %s", is_away ? ", " : "", own);
        strbuf_addc(out, ')');
    }
    return count;
}

static void doctor_check_managers(void *data, struct finding *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    struct doctor_cluster *c = data;
    json_auto_t *answer = NULL;
    const json_t *items;
    size_t count, bad;

    if (!c->is_reached
        || cli_call(c->cli, METHOD_GET, "/aliquot/v1/managers", NULL, &answer, NULL) < 0)
        return; /* only superadmins may list them */
    items = json_object_get(answer, "items");
    count = json_array_size(items);
    bad = doctor_list_bad_managers(items, &list);
    if (bad == 0) {
        finding_say(ret, CHECK_OK, count > 1 ? "all %zu are connected and of one version" : "%zu",
                    count);
        return;
    }
    finding_say(ret, CHECK_WARNING, "%zu of %zu are not as the leader is: %s", bad, count,
                list.data);
    finding_mean(ret, "one that is not connected does not take over when the leader is gone");
    finding_mend(ret, "on their machines: aliquot doctor manager, systemctl restart "
                      "aliquot-manager, or upgrade it; for one that is gone for good: aliquot "
                      "manager rm NAME");
}

/* The manager's clock, from "Date: ..." of its answer; 0 = it has none. */
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
    int64_t theirs = c->is_reached ? doctor_read_date(&c->health) : 0;
    /* their second ends at most that much later */
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
    finding_mean(ret, "past %d seconds the manager refuses requests", REFUSED_SEC);
    finding_mend(ret, "apt install chrony, on the machine whose clock is wrong; chronyc makestep");
}

static void doctor_check_login(void *data, struct finding *ret)
{
    struct doctor_cluster *c = data;
    struct aq_error err = { 0 };

    if (!c->is_reached)
        return;
    if (cli_call(c->cli, METHOD_GET, "/auth/role", NULL, NULL, &err) == 0) {
        finding_say(ret, CHECK_OK, "the manager knows the keypair %s",
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
    struct doctor_cluster cluster = { .cli = cli, .health = CLIENT_REPLY_INIT };
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
    client_reply_done(&cluster.health);
    return r;
}
