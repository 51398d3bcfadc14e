/* SPDX-License-Identifier: Apache-2.0 */
/* standby.c - see standby.h */
#include "manager/standby.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_port.h"
#include "base/log.h"
#include "base/memory.h"
#include "link/link.h"

struct standby {
    struct standby_conf conf;
    struct link_server *server;
    struct link_client *client; /* NULL = the leader is unknown */
    char *leader;               /* its link, "host:port"; NULL = unknown */
    struct uuid incarnation;
    bool is_logged; /* the reason why it is not connected */
};

/* ---- connection to the leader ---- */

static void standby_on_greet(void *data, struct msg_hello *hello)
{
    const struct standby *s = data;

    hello->addr = s->conf.claim->api;
    hello->link = s->conf.claim->link;
}

static void standby_on_connected(void *data, const struct msg_welcome *welcome)
{
    struct standby *s = data;

    (void)welcome;
    s->is_logged = false;
    log_info("standing by for the leader at %s", s->leader);
}

static void standby_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct standby *s = data;

    (void)msg; /* the leader has no orders for a standby */
    link_client_ack(s->client, seq);
}

static void standby_on_disconnected(void *data, const char *why)
{
    struct standby *s = data;

    if (!s->is_logged)
        log_warning("not connected to the leader at %s: %s", s->leader, why);
    s->is_logged = true;
}

static void standby_on_refused(void *data, const char *kind, const char *text)
{
    const struct standby *s = data;
    struct aq_error err = { 0 };

    (void)aq_fail_kind(&err, EACCES, kind, "the leader at %s refused this manager (%s): %s",
                       s->leader, kind, text);
    s->conf.on_refused(s->conf.data, &err);
}

static int standby_connect(struct standby *s, struct aq_error *err)
{
    static const struct link_client_ops ops = {
        .on_greet = standby_on_greet,
        .on_connected = standby_on_connected,
        .on_message = standby_on_message,
        .on_disconnected = standby_on_disconnected,
        .on_refused = standby_on_refused,
    };
    const struct manager_identity *identity = s->conf.identity;
    const char *addresses[] = { s->leader };
    const struct link_client_conf conf = {
        .loop = s->conf.loop,
        .addresses = addresses,
        .address_count = 1,
        .ca = pki_ca_cert(identity->ca),
        .cert = identity->cert,
        .key = identity->key,
        .agent_id = identity->id,
        .incarnation = s->incarnation,
    };

    return link_client_new(&conf, &ops, s, &s->client, err);
}

void standby_set_leader(struct standby *s, const char *link)
{
    struct aq_error err = { 0 };

    if (link && s->leader ? strcmp(link, s->leader) == 0 : link == s->leader)
        return;
    link_client_free(AQ_TAKE(s->client));
    free(s->leader);
    s->leader = aq_strdup(link);
    s->is_logged = false;
    link_server_redirect(s->server, s->leader);
    if (s->leader && standby_connect(s, &err) < 0)
        log_error("cannot connect to the leader at %s: %s", s->leader, err.text);
}

/* ---- agents that connect to this manager ---- */

/* Never called: the link redirects agents to the leader when they greet. */
static void standby_on_agent_message(void *data, const char *agent_id, const struct message *msg)
{
    (void)data;
    (void)agent_id;
    (void)msg;
}

static int standby_listen(struct standby *s, struct aq_error *err)
{
    static const struct link_server_ops ops = { .on_message = standby_on_agent_message };
    AQ_CLEANUP(link_names_done) struct link_names names;
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    AQ_CLEANUP(aq_freep) char *key = NULL;
    struct link_server_conf conf = { .loop = s->conf.loop,
                                     .host = s->conf.conf->link.host,
                                     .port = s->conf.link_port,
                                     .ca = s->conf.identity->ca,
                                     .incarnation = s->incarnation };
    int r;

    link_names_split(s->conf.conf->link_names, &names);
    if ((r = pki_issue_server(conf.ca, names.list, names.count, PKI_SERVER_DAYS, &cert, &key, err))
        < 0)
        return r;
    conf.cert = cert;
    conf.key = key;
    if ((r = link_server_new(&conf, &ops, s, &s->server, err)) == 0)
        link_server_redirect(s->server, NULL);
    return r;
}

int standby_open(const struct standby_conf *conf, struct standby **ret, struct aq_error *err)
{
    struct standby *s = aq_alloc(sizeof(*s));
    int r;

    s->conf = *conf;
    s->incarnation = uuid_random();
    if ((r = standby_listen(s, err)) < 0) {
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

uint16_t standby_get_link_port(const struct standby *s)
{
    return link_server_port(s->server);
}

void standby_free(struct standby *s)
{
    if (!s)
        return;
    link_client_free(s->client);
    link_server_free(s->server);
    free(s->leader);
    free(s);
}
