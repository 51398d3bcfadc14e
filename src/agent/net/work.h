/* work.h - what makes and unmakes one endpoint, blocking, for worker threads */
#ifndef AQ_AGENT_NET_WORK_H
#define AQ_AGENT_NET_WORK_H

#include <net/if.h>

#include "agent/net/names.h"
#include "agent/net/net.h"

struct work_plan {
    char folder[NET_PATH_MAX - 16]; /* of the endpoint */
    char link[IF_NAMESIZE];         /* the node's end of the pair */
    uint32_t address, gateway, mtu;
    struct strbuf record, hosts;
    struct name_servers servers;
    uint16_t ports[NET_PORTS_MAX]; /* inside, published */
    size_t port_count;
};

void work_plan_done(struct work_plan *plan);

/* All of it, or -errno and nothing is left. Where the kernel lacks nftables'
 * "socket", a warning is logged and what listens on loopback is not published.
 */
int work_open(const struct work_plan *plan, struct aq_error *err);

/* Remove what there is of an endpoint; 'link' NULL = it is not known. Goes on
 * after a failure and returns the first.
 */
int work_close(const char *folder, const char *link, struct aq_error *err);

/* True if the folder's namespace is there. */
bool work_has_namespace(const char *folder);

/* Write a file that may be mounted in a container: in place. */
int work_rewrite(const char *path, const char *text, struct aq_error *err);

#endif
