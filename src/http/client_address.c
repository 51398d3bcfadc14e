/* SPDX-License-Identifier: Apache-2.0 */
/* From which address a person asks. */
#include "http/client_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <netinet/in.h>

#include "http/network.h"

static const char header_name[] = "X-Forwarded-For";

int address_normalize(const char *text, size_t len, char ret[CLIENT_ADDRESS_MAX])
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    char copy[CLIENT_ADDRESS_MAX];
    unsigned char bytes[16];

    if (len >= sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (inet_pton(AF_INET, copy, bytes) == 1)
        (void)inet_ntop(AF_INET, bytes, ret, CLIENT_ADDRESS_MAX);
    else if (inet_pton(AF_INET6, copy, bytes) != 1)
        return -EINVAL;
    else if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        (void)inet_ntop(AF_INET, bytes + sizeof(mapped), ret, CLIENT_ADDRESS_MAX);
    else
        (void)inet_ntop(AF_INET6, bytes, ret, CLIENT_ADDRESS_MAX);
    return 0;
}

bool address_list_has(const struct address_list *list, const char *address)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], address) == 0)
            return true;
    return false;
}

/* From the end of one header: each proxy adds at the right whom it was asked
 * by. False if all of it was by trusted ones.
 */
static bool client_address_read(const char *value, const struct address_list *trusted,
                                char ret[CLIENT_ADDRESS_MAX])
{
    const char *end = value + strlen(value);
    char address[CLIENT_ADDRESS_MAX];

    while (end > value) {
        const char *start = end, *stop = end;

        while (start > value && start[-1] != ',')
            start--;
        end = start > value ? start - 1 : start;
        while (start < stop && strchr(" \t", *start))
            start++;
        while (stop > start && strchr(" \t", stop[-1]))
            stop--;
        if (address_normalize(start, (size_t)(stop - start), address) < 0)
            return true; /* the last who is known */
        (void)snprintf(ret, CLIENT_ADDRESS_MAX, "%s", address);
        if (!address_list_has(trusted, address))
            return true;
    }
    return false;
}

void client_address_find(const char *peer, const struct message_head *head,
                         const struct address_list *trusted, char ret[CLIENT_ADDRESS_MAX])
{
    if (address_normalize(peer, strlen(peer), ret) < 0) /* "unix", "memory" */
        (void)snprintf(ret, CLIENT_ADDRESS_MAX, "%s", peer);
    if (!address_list_has(trusted, ret))
        return;
    for (size_t i = head->header_count; i > 0; i--)
        if (strcasecmp(head->headers[i - 1].name, header_name) == 0
            && client_address_read(head->headers[i - 1].value, trusted, ret))
            return;
}

void client_address_network(const char *address, char ret[CLIENT_ADDRESS_MAX])
{
    unsigned char bytes[16];

    (void)snprintf(ret, CLIENT_ADDRESS_MAX, "%s", address);
    if (inet_pton(AF_INET6, address, bytes) != 1)
        return;
    memset(bytes + 8, 0, 8);
    (void)inet_ntop(AF_INET6, bytes, ret, CLIENT_ADDRESS_MAX);
}

bool client_address_name_peer(const char *peer, const struct address_list *trusted,
                              char ret[CLIENT_ADDRESS_MAX])
{
    char address[CLIENT_ADDRESS_MAX];

    if (address_normalize(peer, strlen(peer), address) < 0 || address_list_has(trusted, address))
        return false;
    client_address_network(address, ret);
    return true;
}

static bool client_address_parse(const char *address, struct sockaddr_storage *ret)
{
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

    *ret = (struct sockaddr_storage){ .ss_family = AF_INET };
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1)
        return true;
    ret->ss_family = AF_INET6;
    return inet_pton(AF_INET6, address, &six->sin6_addr) == 1;
}

static bool client_address_is_in(const char *address, const char *networks)
{
    struct sockaddr_storage addr;

    if (!networks)
        return true;
    if (!client_address_parse(address, &addr))
        return false;
    for (const char *at = networks; *at; at += strspn(at, ",")) {
        char text[64];
        size_t len = strcspn(at, ",");
        struct network network;

        (void)snprintf(text, sizeof(text), "%.*s", (int)len, at);
        if (network_parse(text, &network) == 0
            && network_has(&network, (const struct sockaddr *)&addr))
            return true;
        at += len;
    }
    return false;
}

int client_address_check(const char *address, const char *networks, struct aq_error *err)
{
    if (client_address_is_in(address, networks))
        return 0;
    return aq_fail_kind(err, EACCES, "auth-failed", "'%s' is not allowed IP address", address);
}
