/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - the agent's certificates, and joining a cluster with a token */
#include "agent/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "link/link.h"

#define JOIN_USEC (30 * USEC_PER_SEC)

/* "scheme://host:port/" -> host and port. */
static int identity_parse_url(const char *url, struct conf_listen *ret, struct aq_error *err)
{
    const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
    AQ_CLEANUP(aq_freep) char *copy = strdup(host);

    if (!copy)
        return aq_fail_oom(err);
    if (copy[0] && copy[strlen(copy) - 1] == '/')
        copy[strlen(copy) - 1] = '\0';
    return conf_parse_address(copy, LINK_PORT, ret, err);
}

static int identity_write_file(const struct settings *settings, const char *name, const char *text,
                               mode_t mode, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = settings_path(settings, name);

    if (!path)
        return aq_fail_oom(err);
    return fs_write_atomic(AT_FDCWD, path, text, strlen(text), mode, err);
}

/* The certificate comes last: it marks the identity as complete. */
static int identity_write(const struct settings *settings, const struct identity *got,
                          struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *manager = aq_format(strchr(got->manager.host, ':') ? "[%s]:%u\n"
                                                                                  : "%s:%u\n",
                                                   got->manager.host, got->manager.port);
    int r = manager ? fs_mkdirs(settings->state, 0700, err) : aq_fail_oom(err);

    if (r == 0)
        r = identity_write_file(settings, "manager", manager, 0644, err);
    if (r == 0)
        r = identity_write_file(settings, "ca.crt", got->ca, 0644, err);
    if (r == 0)
        r = identity_write_file(settings, "agent.key", got->key, 0600, err);
    AQ_FAULT("agent.join.key-written");
    if (r == 0)
        r = identity_write_file(settings, "agent.crt", got->cert, 0644, err);
    AQ_FAULT("agent.join.written");
    return r;
}

static int identity_ask(const struct settings *settings, const struct pki_token *token,
                        struct identity *got, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    char secret[PKI_SECRET_TEXT_MAX];
    struct utsname host = { .nodename = "" };
    int r = pki_request_new(settings->id, &got->key, &csr, err);

    if (r < 0)
        return r;
    (void)uname(&host);
    return link_join_request(got->manager.host, got->manager.port, token,
                             &(struct msg_join){ .secret = pki_token_secret(token, secret),
                                                 .agent_id = settings->id,
                                                 .csr = csr,
                                                 .version = ALIQUOT_VERSION,
                                                 .architecture = host.machine,
                                                 .hostname = host.nodename },
                             JOIN_USEC, &got->cert, &got->ca, err);
}

int identity_join(const struct settings *settings, const char *url, const char *text,
                  struct aq_error *err)
{
    struct identity got = { .key = NULL };
    struct pki_token token;
    int r = pki_token_parse(text, &token, err);

    if (r == 0 && token.expires_usec < clock_realtime_usec())
        r = aq_fail_field(err, EINVAL, "token",
                          "the join token has expired: ask an administrator for a new one "
                          "(aliquot agent token), and check this machine's clock");
    if (r == 0)
        r = identity_parse_url(url, &got.manager, err);
    if (r == 0)
        r = identity_ask(settings, &token, &got, err);
    AQ_FAULT("agent.join.received");
    if (r == 0)
        r = identity_write(settings, &got, err);
    identity_done(&got);
    return r;
}

static int identity_read_file(const struct settings *settings, const char *name, char **ret,
                              struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = settings_path(settings, name);
    struct strbuf text = STRBUF_INIT;
    int r = path ? fs_read(AT_FDCWD, path, PKI_PEM_MAX, &text, err) : aq_fail_oom(err);

    if (r < 0) {
        strbuf_done(&text);
        return r;
    }
    *ret = strbuf_steal(&text);
    return 0;
}

static int identity_find_manager(const struct settings *settings, struct conf_listen *ret,
                                 struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *joined = NULL;
    int r;

    if (settings->manager.host) {
        *ret = (struct conf_listen){ .host = strdup(settings->manager.host),
                                     .port = settings->manager.port };
        return ret->host ? 0 : aq_fail_oom(err);
    }
    r = identity_read_file(settings, "manager", &joined, err);
    if (r < 0)
        return r;
    joined[strcspn(joined, "\n")] = '\0';
    return conf_parse_address(joined, LINK_PORT, ret, err);
}

int identity_load(const struct settings *settings, struct identity *ret, struct aq_error *err)
{
    struct identity got = { .key = NULL };
    int r = identity_read_file(settings, "agent.crt", &got.cert, err);

    if (r == -ENOENT)
        return aq_fail(err, ENOENT,
                       "this node has not joined a cluster ('%s' has no "
                       "certificate): get a token with 'aliquot agent token' and "
                       "run 'aliquot-agent join MANAGER:PORT TOKEN'",
                       settings->state);
    if (r == 0)
        r = identity_read_file(settings, "agent.key", &got.key, err);
    if (r == 0)
        r = identity_read_file(settings, "ca.crt", &got.ca, err);
    if (r == 0)
        r = identity_find_manager(settings, &got.manager, err);
    if (r < 0)
        identity_done(&got);
    else
        *ret = got;
    return r;
}

void identity_done(struct identity *identity)
{
    if (identity->key)
        explicit_bzero(identity->key, strlen(identity->key));
    free(identity->key);
    free(identity->cert);
    free(identity->ca);
    free(identity->manager.host);
    *identity = (struct identity){ .key = NULL };
}
