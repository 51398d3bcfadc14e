#include "agent/net/names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/net/pool.h"
#include "base/fs.h"

#define FILE_MAX (64u << 10)

static void read_server(const char *value, struct name_servers *ret)
{
    char text[INET_ADDRSTRLEN] = "";
    struct in_addr in;

    (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(value, " \t#;"), value);
    if (inet_pton(AF_INET, text, &in) != 1 || ntohl(in.s_addr) >> 24 == 127
        || ret->count == NAMES_SERVERS_MAX)
        return;
    ret->addresses[ret->count++] = ntohl(in.s_addr);
}

static bool takes_key(const char **at, const char *key)
{
    size_t len = strlen(key);

    if (strncmp(*at, key, len) != 0 || ((*at)[len] != ' ' && (*at)[len] != '\t'))
        return false;
    *at += len;
    *at += strspn(*at, " \t");
    return true;
}

void names_read(const char *text, struct name_servers *ret)
{
    size_t used = 0;

    *ret = (struct name_servers){ .count = 0 };
    while (*text) {
        size_t len = strcspn(text, "\n");
        char line[256];
        const char *at = line;

        (void)snprintf(line, sizeof(line), "%.*s", (int)len, text);
        text += len + (text[len] == '\n');
        if (takes_key(&at, "nameserver")) {
            read_server(at, ret);
        } else if (len < sizeof(line) && (takes_key(&at, "search") || takes_key(&at, "options"))
                   && used + len + 1 < sizeof(ret->rest)) {
            (void)snprintf(ret->rest + used, sizeof(ret->rest) - used, "%s\n", line);
            used += len + 1;
        }
    }
}

void names_find(struct name_servers *ret)
{
    static const char *const paths[] = { "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf" };

    *ret = (struct name_servers){ .count = 0 };
    for (size_t i = 0; ret->count == 0 && i < AQ_COUNT(paths); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        if (fs_read(AT_FDCWD, paths[i], FILE_MAX, &text, NULL) == 0)
            names_read(text.data, ret);
    }
}

void names_add_resolv(struct strbuf *out, const struct name_servers *servers)
{
    char address[INET_ADDRSTRLEN];

    for (size_t i = 0; i < servers->count; i++)
        strbuf_addf(out, "nameserver %s\n", address_format(servers->addresses[i], address));
    strbuf_adds(out, servers->rest);
}

bool names_equal(const struct name_servers *a, const struct name_servers *b)
{
    return a->count == b->count && strcmp(a->rest, b->rest) == 0
           && memcmp(a->addresses, b->addresses, a->count * sizeof(a->addresses[0])) == 0;
}

void names_add_localhost(struct strbuf *out)
{
    strbuf_adds(out, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
}

void names_add_host(struct strbuf *out, uint32_t address, const char *name)
{
    char text[INET_ADDRSTRLEN];

    strbuf_addf(out, "%s\t%s\n", address_format(address, text), name);
}
