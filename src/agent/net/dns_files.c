/* SPDX-License-Identifier: Apache-2.0 */
/* dns_files.c - a kernel's /etc/hosts and /etc/resolv.conf */
#include "agent/net/dns_files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/net/pool.h"
#include "base/fs.h"

#define FILE_MAX (64u << 10)

static void dns_files_read_server(const char *value, struct dns_servers *ret)
{
    char text[INET_ADDRSTRLEN] = "";
    struct in_addr in;

    (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(value, " \t#;"), value);
    if (inet_pton(AF_INET, text, &in) != 1 || ntohl(in.s_addr) >> 24 == 127
        || ret->count == DNS_SERVERS_MAX)
        return;
    ret->addresses[ret->count++] = ntohl(in.s_addr);
}

static bool dns_files_takes_key(const char **at, const char *key)
{
    size_t len = strlen(key);

    if (strncmp(*at, key, len) != 0 || ((*at)[len] != ' ' && (*at)[len] != '\t'))
        return false;
    *at += len;
    *at += strspn(*at, " \t");
    return true;
}

void dns_files_read_resolv(const char *text, struct dns_servers *ret)
{
    size_t used = 0;

    *ret = (struct dns_servers){ .count = 0 };
    while (*text) {
        size_t len = strcspn(text, "\n");
        char line[256];
        const char *at = line;

        (void)snprintf(line, sizeof(line), "%.*s", (int)len, text);
        text += len + (text[len] == '\n');
        if (dns_files_takes_key(&at, "nameserver")) {
            dns_files_read_server(at, ret);
        } else if (len < sizeof(line)
                   && (dns_files_takes_key(&at, "search") || dns_files_takes_key(&at, "options"))
                   && used + len + 1 < sizeof(ret->rest)) {
            (void)snprintf(ret->rest + used, sizeof(ret->rest) - used, "%s\n", line);
            used += len + 1;
        }
    }
}

void dns_files_find_servers(struct dns_servers *ret)
{
    static const char *const paths[] = { "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf" };

    *ret = (struct dns_servers){ .count = 0 };
    for (size_t i = 0; ret->count == 0 && i < AQ_COUNT(paths); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        if (fs_read(AT_FDCWD, paths[i], FILE_MAX, &text, NULL) == 0)
            dns_files_read_resolv(text.data, ret);
    }
}

void dns_files_add_resolv(struct strbuf *out, const struct dns_servers *servers)
{
    char address[INET_ADDRSTRLEN];

    for (size_t i = 0; i < servers->count; i++)
        strbuf_addf(out, "nameserver %s\n", cluster_address_format(servers->addresses[i], address));
    strbuf_adds(out, servers->rest);
}

bool dns_files_equal(const struct dns_servers *a, const struct dns_servers *b)
{
    return a->count == b->count && strcmp(a->rest, b->rest) == 0
           && memcmp(a->addresses, b->addresses, a->count * sizeof(a->addresses[0])) == 0;
}

void dns_files_add_localhost(struct strbuf *out)
{
    strbuf_adds(out, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
}

void dns_files_add_host(struct strbuf *out, uint32_t address, const char *name)
{
    char text[INET_ADDRSTRLEN];

    strbuf_addf(out, "%s\t%s\n", cluster_address_format(address, text), name);
}
