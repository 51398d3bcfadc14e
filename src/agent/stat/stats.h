/* stats.h - the agent's statistics: taken at an interval, sent, kept for /metrics */
#ifndef AQ_AGENT_STAT_STATS_H
#define AQ_AGENT_STAT_STATS_H

#include "agent/node.h"
#include "link/message.h"

/* Begin to take samples, unless [statistics] interval is 0: *ret is NULL then.
 * -ENOMEM.
 */
int stats_new(struct agent *agent, struct stats **ret, struct aq_error *err);
/* NULL is fine. The loop must run once more. */
void stats_free(struct stats *stats);

/* The last sample; NULL before the first. Good until the loop runs again. */
const struct msg_statistics *stats_last(const struct stats *stats);

/* ---- exposition.c ---- */

/* The sample as Prometheus' text format, owners of kernels as labels, under
 * the names that Backend.AI's agents use. -ENOMEM.
 */
int exposition_write(const struct agent *agent, const struct msg_statistics *sample,
                     struct strbuf *out);
/* Serve it where the settings say, or else at the first free port of a few. An address in use is a
 * warning, as it is no reason not to run anything; other errors are those of metrics_listen().
 */
int exposition_serve(struct agent *agent, struct aq_error *err);

#endif
