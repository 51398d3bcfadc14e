/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - see identity.h */
#include "link/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/host_port.h"
#include "base/memory.h"
#include "link/link.h"

#define JOIN_USEC (30 * USEC_PER_SEC)
#define ROOM_BYTES 16384 /* of all files together */

/* "scheme://host:port/" -> host and port. */
static int link_identity_parse_url(const char *url, struct conf_listen *ret, struct aq_error *err)
{
    const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
    AQ_CLEANUP(aq_freep) char *copy = aq_strdup(host);

    if (copy[0] && copy[strlen(copy) - 1] == '/')
        copy[strlen(copy) - 1] = '\0';
    return conf_parse_address(copy, LINK_PORT, ret, err);
}

static char *link_identity_path(const struct link_identity_place *place, const char *name,
                                const char *suffix)
{
    return aq_format("%s/%s%s", place->folder, name, suffix);
}

/* ---- joining ---- */

static int link_identity_write_file(const struct link_identity_place *place, const char *name,
                                    const char *suffix, const char *text, mode_t mode,
                                    struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = link_identity_path(place, name, suffix);

    return fs_write_atomic(AT_FDCWD, path, text, strlen(text), mode, err);
}

/* The certificate comes last: it marks the identity as complete. */
static int link_identity_write(const struct link_identity_place *place,
                               const struct link_identity *got, struct aq_error *err)
{
    char address[HOST_PORT_MAX];
    AQ_CLEANUP(aq_freep) char *manager = aq_format(
        "%s\n", host_port_write(got->manager.host, got->manager.port, address));
    int r = link_identity_write_file(place, "manager", "", manager, 0644, err);

    if (r == 0)
        r = link_identity_write_file(place, "ca", ".crt", got->ca, 0644, err);
    if (r == 0)
        r = link_identity_write_file(place, place->name, ".key", got->key, 0600, err);
    AQ_FAULT("link.join.key-written");
    if (r == 0)
        r = link_identity_write_file(place, place->name, ".crt", got->cert, 0644, err);
    AQ_FAULT("link.join.written");
    return r;
}

static int link_identity_ask(const struct link_identity_place *place, const struct pki_token *token,
                             bool machine, struct link_identity *got, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    char secret[PKI_SECRET_TEXT_MAX];
    struct utsname host = { .nodename = "" };
    int r = pki_request_new(place->id, &got->key, &csr, err);

    if (r < 0)
        return r;
    (void)uname(&host);
    return link_join_request(got->manager.host, got->manager.port, token,
                             &(struct msg_join){ .secret = pki_token_secret(token, secret),
                                                 .agent_id = place->id,
                                                 .csr = csr,
                                                 .version = ALIQUOT_VERSION,
                                                 .architecture = machine ? host.machine : NULL,
                                                 .hostname = machine ? host.nodename : NULL },
                             JOIN_USEC, &got->cert, &got->ca, err);
}

/* Files that do not fit would cost the token, which is good for one join. */
static int link_identity_try_room(const struct link_identity_place *place, struct aq_error *err)
{
    static const char bytes[ROOM_BYTES];
    struct aq_error why = { 0 };
    AQ_CLEANUP(aq_freep) char *path = link_identity_path(place, "room", "");
    int r = fs_mkdirs(place->folder, 0700, &why);

    if (r == 0)
        r = fs_write_quick(AT_FDCWD, path, bytes, sizeof(bytes), 0600, &why);
    if (r == 0)
        (void)unlink(path);
    if (r < 0 && fs_is_out_of_room(-r))
        return aq_fail(err, -r, "cannot join; cannot write to '%s': %s", place->folder,
                       fs_explain(-r));
    return r < 0 ? aq_fail(err, -r, "%s", why.text) : 0;
}

int link_identity_join(const struct link_identity_place *place, const char *url, const char *text,
                       bool machine, struct aq_error *err)
{
    struct link_identity got = { .key = NULL };
    struct pki_token token;
    int r = pki_token_parse(text, &token, err);

    if (r == 0 && token.expires_usec < clock_realtime_usec())
        r = aq_fail_field(err, EINVAL, "token",
                          "the join token has expired: ask an administrator for a new one "
                          "(aliquot agent token), and check this machine's clock");
    if (r == 0)
        r = link_identity_parse_url(url, &got.manager, err);
    if (r == 0)
        r = link_identity_try_room(place, err);
    if (r == 0)
        r = link_identity_ask(place, &token, machine, &got, err);
    AQ_FAULT("link.join.received");
    if (r == 0)
        r = link_identity_write(place, &got, err);
    link_identity_done(&got);
    return r;
}

/* ---- loading ---- */

static int link_identity_read_file(const struct link_identity_place *place, const char *name,
                                   const char *suffix, char **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = link_identity_path(place, name, suffix);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, path, PKI_PEM_MAX, &text, err);

    if (r == 0)
        *ret = strbuf_steal(&text);
    return r;
}

static int link_identity_find_manager(const struct link_identity_place *place,
                                      const struct conf_listen *manager, struct conf_listen *ret,
                                      struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *joined = NULL;
    int r;

    if (manager->host) {
        *ret = (struct conf_listen){ .host = aq_strdup(manager->host), .port = manager->port };
        return 0;
    }
    r = link_identity_read_file(place, "manager", "", &joined, err);
    if (r < 0)
        return r;
    joined[strcspn(joined, "\n")] = '\0';
    return conf_parse_address(joined, LINK_PORT, ret, err);
}

int link_identity_load(const struct link_identity_place *place, const struct conf_listen *manager,
                       struct link_identity *ret, struct aq_error *err)
{
    struct link_identity got = { .key = NULL };
    int r = link_identity_read_file(place, place->name, ".crt", &got.cert, err);

    if (r < 0)
        return r;
    got.id = aq_strdup(place->id);
    r = link_identity_read_file(place, place->name, ".key", &got.key, err);
    if (r == 0)
        r = link_identity_read_file(place, "ca", ".crt", &got.ca, err);
    if (r == 0)
        r = link_identity_find_manager(place, manager, &got.manager, err);
    if (r == -ENOENT)
        r = aq_fail(err, EUCLEAN, "'%s' has a certificate, and not all that belongs to it",
                    place->folder);
    if (r < 0)
        link_identity_done(&got);
    else
        *ret = got;
    return r;
}

void link_identity_done(struct link_identity *identity)
{
    if (identity->key)
        explicit_bzero(identity->key, strlen(identity->key));
    free(identity->id);
    free(identity->key);
    free(identity->cert);
    free(identity->ca);
    free(identity->manager.host);
    *identity = (struct link_identity){ .key = NULL };
}
