/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_offer.c - what this agent offers to others: mode, key, address and port of its tunnel */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/net/cluster_internal.h"
#include "agent/net/cluster_tunnel.h"
#include "base/fs.h"

#define KEY_SIZE 32
#define KEY_FILE "wireguard.key"
#define CLAIM "udp."          /* file RUN/net/udp.PORT: the tag of the agent that has the port */
#define WIREGUARD_OVERHEAD 80 /* over IPv6 */
#define VXLAN_OVERHEAD 50

/* ---- key ---- */

static void cluster_offer_encode(const unsigned char key[KEY_SIZE], char ret[CLUSTER_KEY_MAX])
{
    (void)EVP_EncodeBlock((unsigned char *)ret, key, KEY_SIZE);
}

static int cluster_offer_derive(const unsigned char key[KEY_SIZE], char ret[CLUSTER_KEY_MAX],
                                struct aq_error *err)
{
    unsigned char public[KEY_SIZE];
    size_t len = sizeof(public);
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, key, KEY_SIZE);
    bool is_done = pair && EVP_PKEY_get_raw_public_key(pair, public, &len) == 1;

    EVP_PKEY_free(pair);
    if (!is_done)
        return aq_fail(err, EIO, "cannot derive the public key of '" KEY_FILE "'");
    cluster_offer_encode(public, ret);
    return 0;
}

/* 32 bytes, made once: other agents know this one by it. */
static int cluster_offer_find_key(struct cluster_networks *cluster, const char *state,
                                  struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" KEY_FILE, state);
    AQ_CLEANUP(strbuf_donep) struct strbuf found = STRBUF_INIT;
    unsigned char key[KEY_SIZE];
    int r = fs_read(AT_FDCWD, path, KEY_SIZE, &found, err);

    if (r == -ENOENT || (r == 0 && found.len != KEY_SIZE)) {
        if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
            return aq_fail_errno(err, "make a key");
        key[0] &= 248;
        key[KEY_SIZE - 1] = (key[KEY_SIZE - 1] & 127) | 64;
        if (err)
            *err = (struct aq_error){ 0 };
        r = fs_write_atomic(AT_FDCWD, path, key, sizeof(key), 0600, err);
    } else if (r == 0) {
        memcpy(key, found.data, sizeof(key));
    }
    if (r < 0)
        return r;
    cluster_offer_encode(key, cluster->private_key);
    r = cluster_offer_derive(key, cluster->public_key, err);
    explicit_bzero(key, sizeof(key));
    return r;
}

/* ---- port ---- */

static bool cluster_offer_is_free(uint16_t port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    AQ_CLEANUP(aq_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

/* Several agents of this machine may start at the same time; creating the file claims the port. A
 * claim is stale if the directory of its agent is gone.
 */
static bool cluster_offer_claim(struct cluster_networks *cluster, uint16_t port)
{
    const struct net_directory *directory = &cluster->net->directory;
    AQ_CLEANUP(strbuf_donep) struct strbuf owner = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *name = aq_format(CLAIM "%u", port);
    AQ_CLEANUP(aq_closep) int fd = -1;

    if (fs_read(directory->all, name, NFT_RULES_TAG_MAX, &owner, NULL) == 0) {
        if (strcmp(owner.data, directory->tag) == 0)
            return true;
        if (owner.len && faccessat(directory->all, owner.data, F_OK, 0) == 0)
            return false;
        (void)unlinkat(directory->all, name, 0);
    }
    if (!cluster_offer_is_free(port))
        return false;
    fd = openat(directory->all, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 && fs_write_all(fd, directory->tag, strlen(directory->tag)) == 0;
}

static int cluster_offer_find_port(struct cluster_networks *cluster, unsigned first,
                                   struct aq_error *err)
{
    for (unsigned port = first; port < first + NET_TUNNEL_PORTS && port <= UINT16_MAX; port++)
        if (cluster_offer_claim(cluster, (uint16_t)port)) {
            cluster->port = (uint16_t)port;
            return 0;
        }
    return aq_fail(err, EADDRINUSE, "UDP ports %u to %u are in use; set [network] cluster-port",
                   first, first + NET_TUNNEL_PORTS - 1);
}

void cluster_offer_release(struct cluster_networks *cluster)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format(CLAIM "%u", cluster->port);

    if (cluster->port)
        (void)unlinkat(cluster->net->directory.all, name, 0);
}

/* ---- mode ---- */

static int cluster_offer_find_mode(struct cluster_networks *cluster, const char *mode,
                                   struct aq_error *err)
{
    const char *tag = cluster->net->directory.tag;

    if (strcmp(mode, "none") == 0)
        return aq_fail(err, ENOTSUP, "disabled by [network] cluster = \"none\"");
    if (strcmp(mode, "auto") == 0) {
        cluster->mode = cluster_tunnel_find_mode(tag, err);
        return cluster->mode == CLUSTER_NONE ? -ENOTSUP : 0;
    }
    for (enum cluster_mode m = CLUSTER_WIREGUARD; m <= CLUSTER_VXLAN; m++)
        if (strcmp(mode, cluster_plan_mode_name(m)) == 0) {
            int r = cluster_tunnel_check_mode(m, tag, err);

            cluster->mode = r < 0 ? CLUSTER_NONE : m;
            if (m == CLUSTER_VXLAN)
                (void)aq_fail(err, EPERM, "vxlan does not encrypt what kernels send to each other");
            return r;
        }
    return aq_fail(err, EINVAL,
                   "[network] cluster: expected auto, wireguard, wireguard-go, vxlan or none, "
                   "got '%.40s'",
                   mode);
}

static int cluster_offer_find_address(struct cluster_networks *cluster, const char *address,
                                      struct aq_error *err)
{
    struct in_addr four;
    struct in6_addr six;

    if (address && inet_pton(AF_INET, address, &four) == 1)
        cluster->local = ntohl(four.s_addr);
    else if (!address || inet_pton(AF_INET6, address, &six) != 1)
        return aq_fail(err, EINVAL,
                       "'%.64s' is not an address of this node; set [network] cluster-address",
                       address ? address : "");
    if (cluster->mode == CLUSTER_VXLAN && !cluster->local)
        return aq_fail(err, EINVAL, "vxlan needs an IPv4 address in [network] cluster-address");
    (void)host_port_write(address, cluster->port, cluster->endpoint);
    return 0;
}

/* Other nodes reach containers with the node's network by its address. */
static void cluster_offer_find_host(struct cluster_networks *cluster,
                                    const struct cluster_settings *settings)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    const char *address = settings->address ? settings->address : "";
    size_t len = strlen(cluster->note);

    if (!settings->is_host_offered)
        return;
    if (inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1)
        (void)snprintf(cluster->host, sizeof(cluster->host), "%s", address);
    else
        (void)snprintf(cluster->note + len, sizeof(cluster->note) - len,
                       "%sno host network: '%.64s' is not an address of this node; set [network] "
                       "cluster-address",
                       len ? "; " : "", address);
}

/* ---- all of it ---- */

static void cluster_offer_write(struct cluster_networks *cluster)
{
    bool has_key = cluster->mode == CLUSTER_WIREGUARD || cluster->mode == CLUSTER_WIREGUARD_GO;
    bool is_none = cluster->mode == CLUSTER_NONE;
    const struct cluster_network_offer offer = { .mode = cluster_plan_mode_name(cluster->mode),
                                                 .endpoint = is_none ? NULL : cluster->endpoint,
                                                 .key = has_key ? cluster->public_key : NULL,
                                                 .host = cluster->host[0] ? cluster->host : NULL,
                                                 .rdma = cluster->rdma,
                                                 .mtu = cluster->mtu,
                                                 .note = cluster->note[0] ? cluster->note : NULL };
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    cluster_network_offer_write(&offer, &w);
    free(cluster->offer);
    cluster->offer = strbuf_steal(&text);
}

void cluster_offer_lower_mtu(struct cluster_networks *cluster, uint32_t mtu, const char *why)
{
    size_t len = strlen(cluster->note);

    cluster->mtu = mtu;
    (void)snprintf(cluster->note + len, sizeof(cluster->note) - len, "%s%s", len ? "; " : "", why);
    cluster_offer_write(cluster);
}

int cluster_offer_find(struct cluster_networks *cluster, const struct cluster_settings *settings,
                       struct aq_error *err)
{
    struct aq_error why = { 0 };
    int r = cluster_offer_find_mode(cluster, settings->mode, &why);

    if (r == 0)
        r = cluster_offer_find_port(cluster, settings->port, &why);
    if (r == 0)
        r = cluster_offer_find_address(cluster, settings->address, &why);
    if (r < 0)
        cluster->mode = CLUSTER_NONE;
    else if (cluster->mode != CLUSTER_VXLAN)
        r = cluster_offer_find_key(cluster, settings->state, err);
    if (r < 0 && cluster->mode != CLUSTER_NONE)
        return r;
    (void)snprintf(cluster->note, sizeof(cluster->note), "%.399s", why.text);
    cluster_offer_find_host(cluster, settings);
    cluster->rdma = settings->rdma;
    cluster->mtu = cluster->net->mtu
                   - (cluster->mode == CLUSTER_VXLAN ? VXLAN_OVERHEAD : WIREGUARD_OVERHEAD);
    if (cluster->mtu < CLUSTER_MTU_MIN || cluster->mtu > cluster->net->mtu)
        cluster->mtu = CLUSTER_MTU_MIN;
    cluster_offer_write(cluster);
    return 0;
}
