/* SPDX-License-Identifier: Apache-2.0 */
/* probes.h - the probes of all programs of the node
 *
 * At most 64 are under way at once, in turns.h. Loop's thread only.
 */
#ifndef AQ_AGENT_PROBE_PROBES_H
#define AQ_AGENT_PROBE_PROBES_H

#include "agent/probe/probe_attempt.h"

#define PROBES_AT_ONCE 64

struct probes;
struct probe;

struct probes *probes_new(uv_loop_t *loop);
/* All probes have been freed. NULL is fine. */
void probes_free(struct probes *probes);

struct probe_spec {
    struct probe_target target; /* the path is copied */
    struct probe_rule rule;
};

struct probe_finding {
    enum probe_health health;
    const char *text; /* what the last probe found, for people; NULL = an answer as expected */
    int64_t at_usec;  /* wall clock: since when 'health' holds */
};

struct probe_ops {
    /* The network namespace; *ret is the probe's, -1 = the agent's own. */
    int (*open_network)(void *data, int *ret, struct aq_error *err);
    /* After the first probe, and when 'health' has changed, or the text (of this once a second at
     * most). Must not free the probe.
     */
    void (*on_finding)(void *data, const struct probe_finding *finding);
};

/* Begin. 'ready_usec' is when the program became ready, by the wall clock, as a former process of the
 * agent found; 0 = it has not. The callbacks come later.
 */
struct probe *probe_new(struct probes *probes, const struct probe_spec *spec, int64_t ready_usec,
                        const struct probe_ops *ops, void *data);
/* Another probe may begin in its place, and call back from here. NULL is fine. */
void probe_free(struct probe *probe);

/* What is known now; borrowed until the next callback. */
struct probe_finding probe_get_finding(const struct probe *probe);

#endif
