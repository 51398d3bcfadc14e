/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - one sample of a node, as it is being taken
 *
 * All its memory is kept from one sample to the next, so that taking one
 * allocates nothing. The kinds of the node's own metrics have fixed indices;
 * those of accelerators come behind them as they are met.
 */
#ifndef AQ_AGENT_STAT_SAMPLE_H
#define AQ_AGENT_STAT_SAMPLE_H

#include "link/message.h"

/* Keys, units and derived values as Backend.AI's agents report them. */
enum sample_metric {
    SAMPLE_NODE_CPU_UTIL,
    SAMPLE_NODE_MEM,
    SAMPLE_NODE_DISK,
    SAMPLE_NET_RX,
    SAMPLE_NET_TX,
    SAMPLE_CPU_UTIL,
    SAMPLE_CPU_USED,
    SAMPLE_MEM,
    SAMPLE_IO_READ,
    SAMPLE_IO_WRITE,
    SAMPLE_IO_SCRATCH,
    SAMPLE_METRICS
};

struct sample;

struct sample *sample_new(void);
void sample_free(struct sample *sample);
AQ_DEFINE_CLEANUP(struct sample, sample_free)

void sample_begin(struct sample *sample, int64_t at_usec, int64_t interval_usec);

/* Whose values are added from here on; the node's at first. 'device' is copied. */
void sample_begin_device(struct sample *sample, const char *device);
void sample_begin_kernel(struct sample *sample, const struct uuid *kernel_id,
                         const struct uuid *session_id, int64_t attempt);

/* A value; what is not finite is passed over, as is all that does not fit into
 * a message. A negative capacity is none.
 */
void sample_add(struct sample *sample, size_t metric, double value, double capacity);
/* The same of an accelerator; 'unit' and 'stats' as of model/metric.h. */
void sample_add_accel(struct sample *sample, const char *key, int64_t unit, int64_t stats,
                      double value, double capacity);

/* What was added; good until the next sample_begin(). */
const struct msg_statistics *sample_end(struct sample *sample);
/* The last one that was ended; NULL before the first. */
const struct msg_statistics *sample_last(const struct sample *sample);

#endif
