/* names.h - a kernel's /etc/hosts and /etc/resolv.conf */
#ifndef AQ_AGENT_NET_NAMES_H
#define AQ_AGENT_NET_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#define NAMES_SERVERS_MAX 3 /* more are not asked by anyone's resolver */

/* What kernels ask for names. */
struct name_servers {
    uint32_t addresses[NAMES_SERVERS_MAX];
    size_t count;
    char rest[512]; /* "search ..." and "options ..." lines of the node */
};

/* From the text of a resolv.conf(5). Servers on the loopback interface are
 * those of the node alone and left out, as is IPv6.
 */
void names_read(const char *text, struct name_servers *ret);

/* The node's: /etc/resolv.conf, or what systemd-resolved asks itself. */
void names_find(struct name_servers *ret);

void names_add_resolv(struct strbuf *out, const struct name_servers *servers);
bool names_equal(const struct name_servers *a, const struct name_servers *b);

/* The first lines of a hosts(5) file; then one names_add_host() each. */
void names_add_localhost(struct strbuf *out);
void names_add_host(struct strbuf *out, uint32_t address, const char *name);

#endif
