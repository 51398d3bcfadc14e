/* SPDX-License-Identifier: Apache-2.0 */
/* claim.c - see claim.h */
#include "manager/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "http/url.h"
#include "link/link.h"
#include "link/pki.h"
#include "manager/joined_state.h"
#include "model/agent.h"
#include "store/manager_row.h"

#define HOST_NAME_MAX_BYTES 256

static int claim_read_name(const struct manager_conf *conf, char ret[65], struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *kept = NULL;
    char host[HOST_NAME_MAX_BYTES] = "";
    const char *name = conf->name;
    int r = name ? 0 : joined_state_read(conf->state_dir, "name", &kept, err);

    if (r < 0)
        return r;
    if (!name && !(name = kept)) {
        (void)gethostname(host, sizeof(host) - 1);
        if (strlen(host) > MANAGER_NAME_MAX) /* of a long domain name, the machine */
            host[strcspn(host, ".")] = '\0';
        name = host;
    }
    if (strlen(name) > MANAGER_NAME_MAX || agent_id_check(name, NULL) < 0)
        return aq_fail_field(err, EINVAL, "manager.name",
                             "'%.80s' is not a name of a manager: 1 to %d letters, digits, '.', "
                             "'_' and '-'; set name in [manager] of manager.toml",
                             name, MANAGER_NAME_MAX);
    (void)snprintf(ret, 65, "%s", name);
    return 0;
}

/* "HOST:PORT" that others can use, of an address to listen on. */
static void claim_derive(const struct conf_listen *listen, char ret[HOST_PORT_MAX])
{
    bool is_any = strcmp(listen->host, "0.0.0.0") == 0 || strcmp(listen->host, "::") == 0;
    char host[HOST_NAME_MAX_BYTES] = "localhost";

    if (is_any)
        (void)gethostname(host, sizeof(host) - 1);
    host_port_write(is_any ? host : listen->host, listen->port, ret);
}

static int claim_read_addresses(const struct manager_conf *conf, struct leader_claim *ret,
                                struct aq_error *err)
{
    char api[HOST_PORT_MAX];
    struct address address;
    struct url url;

    claim_derive(&conf->link, ret->link);
    if (conf->link_advertise
        && (address_parse(conf->link_advertise, LINK_PORT, &address, NULL) < 0 || address.is_unix))
        return aq_fail_field(err, EINVAL, "link.advertise",
                             "'%.80s' is not the host:port at which agents reach this manager",
                             conf->link_advertise);
    if (conf->link_advertise)
        host_port_write(address.host, address.port, ret->link);
    claim_derive(&conf->listen, api);
    if (conf->advertise
        && (strlen(conf->advertise) >= sizeof(ret->api)
            || url_parse(conf->advertise, &url, NULL) < 0))
        return aq_fail_field(err, EINVAL, "manager.advertise",
                             "'%.80s' is not the URL at which clients reach this manager: "
                             "https://manager1.example.org:8081",
                             conf->advertise);
    if (conf->advertise)
        (void)snprintf(ret->api, sizeof(ret->api), "%s", conf->advertise);
    else if ((size_t)snprintf(ret->api, sizeof(ret->api), "%s://%s",
                              conf->tls_cert ? "https" : "http", api)
             >= sizeof(ret->api))
        return aq_fail_field(err, EINVAL, "manager.listen", "'%.80s' is too long", api);
    return 0;
}

int manager_claim_read(const struct manager_conf *conf, struct leader_claim *ret,
                       struct aq_error *err)
{
    struct leader_claim claim = { .version = ALIQUOT_VERSION };
    struct uuid incarnation = uuid_random();
    int r = claim_read_name(conf, claim.name, err);

    if (r == 0)
        r = claim_read_addresses(conf, &claim, err);
    if (r < 0)
        return r;
    uuid_format(&incarnation, claim.incarnation);
    *ret = claim;
    return 0;
}

int manager_claim_make(const struct manager_conf *conf, struct leader_claim *ret,
                       struct aq_error *err)
{
    struct aq_error why = { 0 };
    int r = manager_claim_read(conf, ret, err);

    if (r < 0)
        return r;
    if (joined_state_keep_name(conf->state_dir, ret->name, &why)
        < 0) /* the next start tries again */
        log_warning("failed to keep the name of this manager: %s", why.text);
    return 0;
}

int manager_certificate_make(struct pki_ca *ca, const char *name, char **ret_cert, char **ret_key,
                             struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *id = aq_format(LINK_MANAGER_PREFIX "%s", name);
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    char *key = NULL;
    int r = pki_request_new(id, &key, &csr, err);

    if (r == 0)
        r = pki_issue_agent(ca, csr, id, PKI_AGENT_DAYS, ret_cert, NULL, err);
    if (r < 0) {
        if (key)
            explicit_bzero(key, strlen(key));
        free(key);
        return r;
    }
    *ret_key = key;
    return 0;
}
