/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - see join.h */
#include "manager/join.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "link/link.h"
#include "manager/claim.h"
#include "manager/joined_state.h"
#include "store/info.h"

#define JOIN_USEC (30 * USEC_PER_SEC)

static int join_ask(const struct manager_conf *conf, const struct leader_claim *claim,
                    const char *url, const struct pki_token *token, char **ret_ca,
                    struct link_join_keys *ret_keys, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *id = aq_format(LINK_MANAGER_PREFIX "%s", claim->name);
    AQ_CLEANUP(aq_freep) char *unused = NULL; /* a manager gets no certificate */
    AQ_CLEANUP(aq_freep) char *leader = NULL;
    char secret[PKI_SECRET_TEXT_MAX];
    const struct msg_join msg = {
        .secret = pki_token_secret(token, secret),
        .agent_id = id,
        .version = claim->version,
        .link = claim->link,
        .api = claim->api,
        .has_database = conf->database,
    };
    int r = link_join_request(strstr(url, "://") ? strstr(url, "://") + 3 : url, token, &msg,
                              JOIN_USEC, &unused, ret_ca, &leader, ret_keys, err);

    explicit_bzero(secret, sizeof(secret));
    return r;
}

/* A database that this machine does not reach is found out before the manager is needed. */
static void join_try_database(const char *database)
{
    AQ_CLEANUP(store_info_done) struct store_info info = { .risks = STRBUF_INIT };
    struct aq_error err = { 0 };

    if (store_info_read(database, &info, &err) < 0)
        log_warning("this machine does not reach the cluster's database yet, which the manager "
                    "needs: %s",
                    err.text);
}

int manager_join(const struct manager_conf *conf, const char *url, const char *text,
                 struct aq_error *err)
{
    AQ_CLEANUP(link_join_keys_done) struct link_join_keys keys = { .ca_key = NULL };
    AQ_CLEANUP(aq_freep) char *ca = NULL;
    struct leader_claim claim;
    struct pki_token token;
    int r = pki_token_parse(text, &token, err);

    if (r == 0 && token.expires_usec < clock_realtime_usec())
        r = aq_fail(err, EACCES,
                    "the join token has expired; make a new one (aliquot admin manager token), and "
                    "check this machine's clock");
    if (r == 0)
        r = manager_claim_read(conf, &claim, err);
    if (r == 0)
        r = joined_state_prepare(conf->state_dir, err);
    if (r == 0)
        r = join_ask(conf, &claim, url, &token, &ca, &keys, err);
    AQ_FAULT("manager.join.received");
    if (r < 0)
        return r;
    if (conf->database)
        keys.database = aq_strdup(conf->database);
    if (!keys.database)
        return aq_fail(err, EPROTO, "the leader named no database; name it: --database URI");
    if ((r = joined_state_write(conf->state_dir, claim.name, ca, &keys, err)) < 0)
        return r;
    join_try_database(keys.database);
    (void)printf("manager '%s' has joined; agents will reach it at %s, clients at %s. Start it: "
                 "systemctl start aliquot-manager\n",
                 claim.name, claim.link, claim.api);
    return 0;
}

int manager_join_apply(struct manager_conf *conf, struct aq_error *err)
{
    int r = joined_state_settle(conf->state_dir, err);

    if (r == 0 && !conf->database)
        r = joined_state_read(conf->state_dir, "database", &conf->database, err);
    return r == -EACCES ? 0 : r; /* what needs the folder says whose it is; 'sample' does not */
}
