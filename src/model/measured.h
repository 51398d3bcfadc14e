/* SPDX-License-Identifier: Apache-2.0 */
/* measured.h - all metrics of one owner: a kernel, a device, a node
 *
 * Besides the metrics themselves it gathers their values for the next row of
 * a coarse series: minimum, maximum, sum and count since the last row.
 */
#ifndef AQ_MODEL_MEASURED_H
#define AQ_MODEL_MEASURED_H

#include "base/error.h"
#include "base/strbuf.h"
#include "model/metric.h"

#define MEASURED_MAX 256 /* metrics of an owner */
#define METRIC_KINDS_MAX 4096

/* Kinds that were met; each is kept once, at the same place forever. */
struct metric_kinds {
    struct metric_kind **items;
    size_t count, cap;
};

/* The same kind; NULL if there is no room, or the key is none. */
const struct metric_kind *metric_kinds_get(struct metric_kinds *kinds,
                                           const struct metric_kind *like);
/* NULL if there is none. */
const struct metric_kind *metric_kinds_find(const struct metric_kinds *kinds,
                                            const struct metric_kind *like);
void metric_kinds_done(struct metric_kinds *kinds);

struct measured_item {
    const struct metric_kind *kind;
    struct metric metric;
    struct metric_sum recent; /* since the last row of the series */
};

struct measured {
    struct measured_item *items;
    size_t count, cap;
    int64_t at_usec;     /* of the last sample */
    int64_t recent_usec; /* of the first in 'recent'; 0 = there is none */
};

void measured_done(struct measured *m);

/* Take a sample. What does not fit (-ENOSPC) is not taken. */
int measured_add(struct measured *m, const struct metric_kind *kind, double value, double capacity,
                 int64_t at_usec);

/* NULL if it was never measured. */
const struct measured_item *measured_find(const struct measured *m, const char *key);

/* {"cpu_util": metric_write(), …} */
void measured_write(const struct measured *m, struct jsonw *w);

/* ---- rows of a series ---- */

/* {"cpu_util":[unit,show,stats,min,max,sum,count],…} of 'recent'. */
void measured_write_row(const struct measured *m, struct jsonw *w);
/* Begin to gather for the next row. */
void measured_begin_row(struct measured *m);

struct measured_row_item {
    struct metric_kind kind; /* borrows its key from the row */
    struct metric_sum sum;
};
/* Read a row, item by item: 'take' is called for each.
 * -EINVAL if it is none.
 */
int measured_read_row(const char *text,
                      void (*take)(void *data, const struct measured_row_item *item), void *data);

/* Values from before this program was started: only sums are affected. */
void measured_restore(struct measured *m, struct metric_kinds *kinds,
                      const struct measured_row_item *item);

#endif
