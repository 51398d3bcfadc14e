/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_network.c - the network of one session whose kernels are on several agents */
#include "model/cluster_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "model/agent.h"
#include "model/wire_fields.h"

#define KEY_LEN 44 /* BASE64 of 32 bytes */
#define HOSTNAME_MAX 63
#define ENDPOINT_MAX 64

#define AT(member) offsetof(struct cluster_network_kernel, member)
static const struct wire_field kernel_fields[] = {
    { "hostname", WIRE_TEXT, AT(hostname), WIRE_REQUIRED },
    { "address", WIRE_TEXT, AT(address), WIRE_REQUIRED },
    { "agent", WIRE_TEXT, AT(agent) },
    { "port", WIRE_NUMBER, AT(port) },
    WIRE_FIELDS_END,
};
#undef AT

#define AT(member) offsetof(struct cluster_network_agent, member)
static const struct wire_field agent_fields[] = {
    { "id", WIRE_TEXT, AT(id), WIRE_REQUIRED },
    { "endpoint", WIRE_TEXT, AT(endpoint), WIRE_REQUIRED },
    { "key", WIRE_TEXT, AT(key) },
    { "address", WIRE_TEXT, AT(address), WIRE_REQUIRED },
    WIRE_FIELDS_END,
};
#undef AT

static const struct wire_shape kernel_shape = { .fields = kernel_fields,
                                                .size = sizeof(struct cluster_network_kernel),
                                                .max = CLUSTER_NETWORK_KERNELS_MAX };
static const struct wire_shape agent_shape = { .fields = agent_fields,
                                               .size = sizeof(struct cluster_network_agent),
                                               .max = CLUSTER_NETWORK_KERNELS_MAX };

#define AT(member) offsetof(struct cluster_network, member)
static const struct wire_field network_fields[] = {
    { "mode", WIRE_TEXT, AT(mode) },
    { "subnet", WIRE_TEXT, AT(subnet) },
    { "address", WIRE_TEXT, AT(address) },
    { "kernels", WIRE_LIST, AT(kernels), .of = &kernel_shape },
    { "agents", WIRE_LIST, AT(agents), .of = &agent_shape },
    WIRE_FIELDS_END,
};
#undef AT

#define AT(member) offsetof(struct cluster_network_offer, member)
static const struct wire_field offer_fields[] = {
    { "mode", WIRE_TEXT, AT(mode), WIRE_REQUIRED },
    { "endpoint", WIRE_TEXT, AT(endpoint) },
    { "key", WIRE_TEXT, AT(key) },
    { "host", WIRE_TEXT, AT(host) },
    { "rdma", WIRE_TEXTS, AT(rdma) },
    { "mtu", WIRE_NUMBER, AT(mtu) },
    { "note", WIRE_TEXT, AT(note) },
    WIRE_FIELDS_END,
};
#undef AT

/* ---- addresses ---- */

static int cluster_address_parse(const char *text, uint32_t *ret)
{
    struct in_addr in;

    if (inet_pton(AF_INET, text, &in) != 1)
        return -EINVAL;
    *ret = ntohl(in.s_addr);
    return 0;
}

int cluster_range_parse(const char *text, struct cluster_range *ret)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    const char *bits = slash ? slash + 1 : "32";
    char address[INET_ADDRSTRLEN];
    struct cluster_range range;

    if (len >= sizeof(address) || strlen(bits) - 1 > 1 || bits[strspn(bits, "0123456789")])
        return -EINVAL;
    (void)snprintf(address, sizeof(address), "%.*s", (int)len, text);
    range.bits = (unsigned)strtoul(bits, NULL, 10);
    if (range.bits > 32 || cluster_address_parse(address, &range.first) < 0
        || range.first & (uint32_t)((UINT64_C(1) << (32 - range.bits)) - 1))
        return -EINVAL;
    *ret = range;
    return 0;
}

bool cluster_range_has(const struct cluster_range *range, uint32_t address)
{
    return address >= range->first && address - range->first < UINT64_C(1) << (32 - range->bits);
}

char *cluster_address_format(uint32_t address, char text[INET_ADDRSTRLEN])
{
    const struct in_addr in = { .s_addr = htonl(address) };

    (void)inet_ntop(AF_INET, &in, text, INET_ADDRSTRLEN);
    return text;
}

/* ---- what agents and manager write into configurations and hosts files ---- */

static bool cluster_network_is_hostname(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= HOSTNAME_MAX
           && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && text[0] != '-';
}

static bool cluster_network_is_endpoint(const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    bool is_six = text[0] == '[' && len > 2 && text[len - 1] == ']';
    char address[ENDPOINT_MAX];
    unsigned char bytes[sizeof(struct in6_addr)];
    size_t digits = colon ? strlen(colon + 1) : 0;

    if (len == 0 || len >= sizeof(address) || digits == 0 || digits > 5
        || colon[1 + strspn(colon + 1, "0123456789")] || atoi(colon + 1) < 1
        || atoi(colon + 1) > UINT16_MAX)
        return false;
    (void)snprintf(address, sizeof(address), "%.*s", (int)(is_six ? len - 2 : len), text + is_six);
    return inet_pton(is_six ? AF_INET6 : AF_INET, address, bytes) == 1;
}

/* The last digit has four bits of the 32 bytes: wg refuses a whole configuration in which the other
 * two are set.
 */
static bool cluster_network_is_key(const char *text)
{
    return strlen(text) == KEY_LEN
           && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
                  == KEY_LEN - 1
           && strchr("AEIMQUYcgkosw048", text[KEY_LEN - 2]) && text[KEY_LEN - 1] == '=';
}

static int cluster_network_refuse(const char *key, const char *value, struct aq_error *err)
{
    return aq_fail_field(err, EINVAL, key, "a session's network: '%.64s' is not a valid %s", value,
                         key);
}

static int cluster_network_check_agent(const struct cluster_network_agent *a, struct aq_error *err)
{
    uint32_t address;

    if (agent_id_check(a->id, NULL) < 0)
        return cluster_network_refuse("id", a->id, err);
    if (!cluster_network_is_endpoint(a->endpoint))
        return cluster_network_refuse("endpoint", a->endpoint, err);
    if (a->key && !cluster_network_is_key(a->key))
        return cluster_network_refuse("key", a->key, err);
    return cluster_address_parse(a->address, &address) < 0
               ? cluster_network_refuse("address", a->address, err)
               : 0;
}

static int cluster_network_check_kernels(const struct cluster_network *network,
                                         const struct cluster_range *subnet, struct arena *arena,
                                         struct aq_error *err)
{
    size_t size = (size_t)1 << AQ_MIN(32 - subnet->bits, 16u);
    bool *taken = arena_array(arena, size, sizeof(*taken));

    memset(taken, 0, size * sizeof(*taken));
    for (size_t i = 0; i < network->kernel_count; i++) {
        const struct cluster_network_kernel *k = &network->kernels[i];
        uint32_t address;

        if (!cluster_network_is_hostname(k->hostname))
            return cluster_network_refuse("hostname", k->hostname, err);
        if (k->agent && agent_id_check(k->agent, NULL) < 0)
            return cluster_network_refuse("agent", k->agent, err);
        if (cluster_address_parse(k->address, &address) < 0 || !cluster_range_has(subnet, address)
            || address - subnet->first >= size || taken[address - subnet->first])
            return cluster_network_refuse("address", k->address, err);
        taken[address - subnet->first] = true;
    }
    return 0;
}

static bool cluster_network_is_address(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Kernels on one node share its address; their ports differ. */
static int cluster_network_check_host(const struct cluster_network *network, struct aq_error *err)
{
    for (size_t i = 0; i < network->kernel_count; i++) {
        const struct cluster_network_kernel *k = &network->kernels[i];
        char port[24];

        (void)snprintf(port, sizeof(port), "%" PRId64, k->port);
        if (!cluster_network_is_hostname(k->hostname))
            return cluster_network_refuse("hostname", k->hostname, err);
        if (k->agent && agent_id_check(k->agent, NULL) < 0)
            return cluster_network_refuse("agent", k->agent, err);
        if (!cluster_network_is_address(k->address))
            return cluster_network_refuse("address", k->address, err);
        if (k->port < CLUSTER_HOST_PORT_FIRST
            || k->port + CLUSTER_HOST_PORTS - 1 > CLUSTER_HOST_PORT_LAST)
            return cluster_network_refuse("port", port, err);
    }
    return 0;
}

bool cluster_network_is_device(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= HOSTNAME_MAX
           && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
                  == len;
}

bool cluster_network_is_host(const struct cluster_network *network)
{
    return network->mode && strcmp(network->mode, CLUSTER_NETWORK_HOST) == 0;
}

const struct cluster_network_kernel *cluster_network_find(const struct cluster_network *network,
                                                          const char *hostname)
{
    for (size_t i = 0; i < network->kernel_count; i++)
        if (strcmp(network->kernels[i].hostname, hostname) == 0)
            return &network->kernels[i];
    return NULL;
}

int cluster_network_parse(const char *text, struct arena *arena, struct cluster_network *ret,
                          struct aq_error *err)
{
    json_auto_t *object = json_load_string(text, JSON_REJECT_DUPLICATES);
    struct cluster_range subnet = { .bits = 32 };
    uint32_t address;
    int r;

    *ret = (struct cluster_network){ .subnet = NULL };
    if (!json_is_object(object))
        return aq_fail_field(err, EINVAL, "network", "a session's network is not a JSON object");
    r = wire_fields_read(network_fields, object, 0, arena, ret, err);
    if (r == 0 && ret->subnet && (cluster_range_parse(ret->subnet, &subnet) < 0 || subnet.bits < 8))
        r = cluster_network_refuse("subnet", ret->subnet, err);
    if (r == 0 && ret->address && cluster_address_parse(ret->address, &address) < 0)
        r = cluster_network_refuse("address", ret->address, err);
    if (r == 0 && ret->mode && !cluster_network_is_host(ret))
        r = cluster_network_refuse("mode", ret->mode, err);
    if (r == 0)
        r = ret->mode ? cluster_network_check_host(ret, err)
                      : cluster_network_check_kernels(ret, &subnet, arena, err);
    for (size_t i = 0; r == 0 && i < ret->agent_count; i++)
        r = cluster_network_check_agent(&ret->agents[i], err);
    return r;
}

void cluster_network_write(const struct cluster_network *network, struct jsonw *w)
{
    jsonw_object_begin(w);
    (void)wire_fields_write(network_fields, network, 0, w, NULL); /* no JSON */
    jsonw_object_end(w);
}

int cluster_network_offer_parse(const char *text, struct arena *arena,
                                struct cluster_network_offer *ret, struct aq_error *err)
{
    static const char *const modes[] = { "wireguard", "wireguard-go", "vxlan", "none" };
    json_auto_t *object = json_load_string(text, JSON_REJECT_DUPLICATES);
    size_t i = 0;
    int r;

    *ret = (struct cluster_network_offer){ .mode = "none" };
    if (!json_is_object(object))
        return aq_fail_field(err, EINVAL, "network", "an agent's network is not a JSON object");
    if ((r = wire_fields_read(offer_fields, object, 0, arena, ret, err)) < 0)
        return r;
    if (ret->host && !cluster_network_is_address(ret->host))
        return cluster_network_refuse("host", ret->host, err);
    for (i = 0; i < ret->rdma.count; i++)
        if (!cluster_network_is_device(ret->rdma.items[i]))
            return cluster_network_refuse("rdma", ret->rdma.items[i], err);
    i = 0;
    while (i < AQ_COUNT(modes) && strcmp(modes[i], ret->mode) != 0)
        i++;
    if (i == AQ_COUNT(modes))
        ret->mode = "none";
    if (strcmp(ret->mode, "none") == 0)
        return 0;
    if (!ret->endpoint || !cluster_network_is_endpoint(ret->endpoint))
        return cluster_network_refuse("endpoint", ret->endpoint ? ret->endpoint : "", err);
    if (ret->key ? !cluster_network_is_key(ret->key) : strncmp(ret->mode, "wireguard", 9) == 0)
        return cluster_network_refuse("key", ret->key ? ret->key : "", err);
    return 0;
}

void cluster_network_offer_write(const struct cluster_network_offer *offer, struct jsonw *w)
{
    jsonw_object_begin(w);
    (void)wire_fields_write(offer_fields, offer, 0, w, NULL); /* no JSON */
    jsonw_object_end(w);
}
