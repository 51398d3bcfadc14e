/* home.h - this agent's folder below RUN/net, and its part of the pool
 *
 * Several agents may share a machine and a pool. Under the lock of RUN/net
 * each takes a slice that no other folder has; what agents left that are
 * neither alive nor have networks open is cleared on the way.
 */
#ifndef AQ_AGENT_NET_HOME_H
#define AQ_AGENT_NET_HOME_H

#include "agent/net/pool.h"
#include "agent/net/rules.h"

#define HOME_PATH_MAX 192
#define HOME_SLICE_BITS 22 /* 1021 kernels; a smaller pool is one slice */

struct home {
    int all, own;  /* folders RUN/net and RUN/net/TAG */
    int lock;      /* held for life */
    char path[HOME_PATH_MAX]; /* RUN/net/TAG */
    char tag[RULES_TAG_MAX];
    struct range slice;
};

#define HOME_CLOSED { .all = -1, .own = -1, .lock = -1 }

/* -EBUSY if an agent of this identity is alive, -ENOSPC if no slice is free.
 * Commands that remove the tables of cleared agents are appended to 'nft'.
 */
int home_open(const char *run_dir, const char *identity, const struct range *pool,
              struct home *ret, struct strbuf *nft, struct aq_error *err);

/* Remove the folder, which must have no endpoints, and say whether it was the
 * last of all agents'.
 */
bool home_remove(struct home *home);
void home_close(struct home *home);

/* Call 'fn' with the name of each folder in the agent's: an endpoint. */
int home_each(const struct home *home, int (*fn)(void *data, const char *name), void *data);

#endif
