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
#include "base/log.h"
#include "base/memory.h"
#include "conf/tables.h"
#include "link/link.h"
#include "link/manager_list.h"

#define JOIN_USEC (30 * USEC_PER_SEC)
#define ROOM_BYTES 16384 /* of all files together */
#define MANAGERS_MAX_BYTES (64u << 10)
#define EPOCH_MAX_BYTES 32

/* With a port, as it is kept. Caller frees. */
static int link_identity_normalize(const char *text, char **ret, struct aq_error *err)
{
    char address[HOST_PORT_MAX];
    struct conf_listen parsed;
    int r = conf_parse_address(text, LINK_PORT, &parsed, err);

    if (r < 0)
        return r;
    *ret = aq_strdup(host_port_write(parsed.host, parsed.port, address));
    free(parsed.host);
    return 0;
}

/* "scheme://host:port/" -> "host:port" */
static int link_identity_parse_url(const char *url, char **ret, struct aq_error *err)
{
    const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
    AQ_CLEANUP(aq_freep) char *copy = aq_strdup(host);

    if (copy[0] && copy[strlen(copy) - 1] == '/')
        copy[strlen(copy) - 1] = '\0';
    return link_identity_normalize(copy, ret, err);
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

/* Managers and epoch of a cluster that was joined before are not those of this one. The certificate
 * comes last: it marks the identity as complete.
 */
static int link_identity_write(const struct link_identity_place *place, const char *address,
                               const struct link_identity *got, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *manager = aq_format("%s\n", address);
    AQ_CLEANUP(aq_freep) char *managers = link_identity_path(place, "managers", "");
    AQ_CLEANUP(aq_freep) char *epoch = link_identity_path(place, "epoch", "");
    int r;

    (void)unlink(managers);
    (void)unlink(epoch);
    r = link_identity_write_file(place, "manager", "", manager, 0644, err);
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

/* 'inout_address' becomes that of the manager that answered. */
static int link_identity_ask(const struct link_identity_place *place, const struct pki_token *token,
                             bool machine, char **inout_address, struct link_identity *got,
                             struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    AQ_CLEANUP(aq_freep) char *asked = AQ_TAKE(*inout_address);
    char secret[PKI_SECRET_TEXT_MAX];
    struct utsname host = { .nodename = "" };
    int r = pki_request_new(place->id, &got->key, &csr, err);

    if (r < 0)
        return r;
    (void)uname(&host);
    return link_join_request(asked, token,
                             &(struct msg_join){ .secret = pki_token_secret(token, secret),
                                                 .agent_id = place->id,
                                                 .csr = csr,
                                                 .version = ALIQUOT_VERSION,
                                                 .architecture = machine ? host.machine : NULL,
                                                 .hostname = machine ? host.nodename : NULL },
                             JOIN_USEC, &got->cert, &got->ca, inout_address, NULL, err);
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
    AQ_CLEANUP(aq_freep) char *address = NULL;
    struct link_identity got = { .key = NULL };
    struct pki_token token;
    int r = pki_token_parse(text, &token, err);

    if (r == 0 && token.expires_usec < clock_realtime_usec())
        r = aq_fail_field(err, EINVAL, "token",
                          "the join token has expired: ask an administrator for a new one "
                          "(aliquot agent token), and check this machine's clock");
    if (r == 0)
        r = link_identity_parse_url(url, &address, err);
    if (r == 0)
        r = link_identity_try_room(place, err);
    if (r == 0)
        r = link_identity_ask(place, &token, machine, &address, &got, err);
    AQ_FAULT("link.join.received");
    if (r == 0)
        r = link_identity_write(place, address, &got, err);
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

static void link_identity_add(struct link_identity *identity, const char *address)
{
    for (size_t i = 0; i < identity->addresses.count; i++)
        if (strcmp(identity->addresses.items[i], address) == 0)
            return;
    conf_list_add(&identity->addresses, address, strlen(address));
}

static int link_identity_add_checked(struct link_identity *identity, const char *text,
                                     struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *address = NULL;
    int r = link_identity_normalize(text, &address, err);

    if (r == 0)
        link_identity_add(identity, address);
    return r;
}

/* The manager that was joined, and those that a leader has named since. */
static int link_identity_add_known(const struct link_identity_place *place,
                                   struct link_identity *identity, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *joined = NULL;
    AQ_CLEANUP(aq_freep) char *path = link_identity_path(place, "managers", "");
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(manager_list_done) struct manager_list named;
    const struct msg_managers *managers = &named.msg.managers;
    struct aq_error why = { 0 };
    int r = link_identity_read_file(place, "manager", "", &joined, err);

    manager_list_init(&named);
    if (r < 0)
        return r;
    joined[strcspn(joined, "\n")] = '\0';
    r = link_identity_add_checked(identity, joined, err);
    if (r < 0 || fs_read(AT_FDCWD, path, MANAGERS_MAX_BYTES, &text, NULL) < 0)
        return r;
    if (manager_list_read(&named, text.data, text.len, &why) < 0)
        log_warning("cannot read '%s', which the next leader writes again: %s", path, why.text);
    for (size_t i = 0; i < managers->manager_count; i++)
        (void)link_identity_add_checked(identity, managers->managers[i].link, &why);
    return 0;
}

static int link_identity_find_managers(const struct link_identity_place *place,
                                       const struct conf_list *managers,
                                       struct link_identity *identity, struct aq_error *err)
{
    int r = managers->count ? 0 : link_identity_add_known(place, identity, err);

    identity->is_fixed = managers->count > 0;
    for (size_t i = 0; r == 0 && i < managers->count; i++)
        r = link_identity_add_checked(identity, managers->items[i], err);
    return r < 0 ? r
                 : conf_parse_address(identity->addresses.items[0], LINK_PORT, &identity->manager,
                                      err);
}

/* A damaged file is no reason to follow a leader that has been replaced. */
static int link_identity_read_epoch(const struct link_identity_place *place, int64_t *ret,
                                    struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = link_identity_path(place, "epoch", "");
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char *end = NULL;
    long long epoch;
    int r = fs_read(AT_FDCWD, path, EPOCH_MAX_BYTES, &text, err);

    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    errno = 0;
    epoch = strtoll(text.data, &end, 10);
    if (errno || end == text.data || strcmp(end, "\n") != 0 || epoch < 0)
        return aq_fail(err, EUCLEAN,
                       "'%s' does not hold the number of an epoch; remove it once the manager that "
                       "leads is the only one that runs",
                       path);
    *ret = epoch;
    return 0;
}

int link_identity_load(const struct link_identity_place *place, const struct conf_list *managers,
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
        r = link_identity_find_managers(place, managers, &got, err);
    if (r == -ENOENT)
        r = aq_fail(err, EUCLEAN, "'%s' has a certificate, and not all that belongs to it",
                    place->folder);
    if (r == 0)
        r = link_identity_read_epoch(place, &got.epoch, err);
    if (r < 0)
        link_identity_done(&got);
    else
        *ret = got;
    return r;
}

int link_identity_check_addresses(const char *field, const struct conf_list *managers,
                                  struct aq_error *err)
{
    for (size_t i = 0; i < managers->count; i++) {
        AQ_CLEANUP(aq_freep) char *address = NULL;
        struct aq_error why;

        if (link_identity_normalize(managers->items[i], &address, &why) < 0)
            return aq_fail_field(err, EINVAL, field, "%s: %s", field, why.text);
    }
    return 0;
}

/* ---- what leaders say ---- */

int link_identity_keep_epoch(const struct link_identity_place *place, int64_t epoch,
                             struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("%lld\n", (long long)epoch);

    return link_identity_write_file(place, "epoch", "", text, 0644, err);
}

int link_identity_keep_managers(const struct link_identity_place *place,
                                const struct link_manager *list, size_t count, struct aq_error *err)
{
    AQ_CLEANUP(manager_list_done) struct manager_list named;
    int r;

    manager_list_init(&named);
    r = manager_list_set(&named, list, count, err);
    return r < 0 ? r : link_identity_write_file(place, "managers", "", named.text.data, 0644, err);
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
    conf_list_done(&identity->addresses);
    *identity = (struct link_identity){ .key = NULL };
}
