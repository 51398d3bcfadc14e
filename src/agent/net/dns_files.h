/* SPDX-License-Identifier: Apache-2.0 */
/* dns_files.h - a kernel's /etc/hosts and /etc/resolv.conf */
#ifndef AQ_AGENT_NET_DNS_FILES_H
#define AQ_AGENT_NET_DNS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#define DNS_SERVERS_MAX 3 /* more are not asked by anyone's resolver */

/* What kernels ask for names. */
struct dns_servers {
    uint32_t addresses[DNS_SERVERS_MAX];
    size_t count;
    char rest[512]; /* "search ..." and "options ..." lines of the node */
};

/* From the text of a resolv.conf(5). Servers on the loopback interface are
 * those of the node alone and left out, as is IPv6.
 */
void dns_files_read_resolv(const char *text, struct dns_servers *ret);

/* The node's: /etc/resolv.conf, or what systemd-resolved asks itself. */
void dns_files_find_servers(struct dns_servers *ret);

void dns_files_add_resolv(struct strbuf *out, const struct dns_servers *servers);
bool dns_files_equal(const struct dns_servers *a, const struct dns_servers *b);

/* The first lines of a hosts(5) file; then one dns_files_add_host() each. */
void dns_files_add_localhost(struct strbuf *out);
void dns_files_add_host(struct strbuf *out, uint32_t address, const char *name);

#endif
