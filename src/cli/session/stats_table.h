/* SPDX-License-Identifier: Apache-2.0 */
/* stats_table.h - what a session's kernels use, a row for each metric, with its last samples */
#ifndef AQ_CLI_SESSION_STATS_TABLE_H
#define AQ_CLI_SESSION_STATS_TABLE_H

#include <jansson.h>

#include "base/error.h"
#include "cli/output/output.h"

#define STATS_SAMPLES_MAX 20

/* The last answers of ".../statistics", the newest last. */
struct stats_history {
    json_t *answers[STATS_SAMPLES_MAX];
    size_t count;
};

/* Has any kernel been measured? */
bool stats_is_measured(const json_t *answer);

/* Take an answer (its reference, too); one without a new sample replaces the last. */
void stats_history_add(struct stats_history *h, json_t *answer);
void stats_history_done(struct stats_history *h);

/* The last answer as a list in the format of 'o'. */
int stats_write(const struct output *o, const struct stats_history *h, struct strbuf *out,
                struct aq_error *err);

/* The same for a screen, with a time line of the samples, below the session's name and status. */
void stats_write_live(const struct output *o, const struct stats_history *h, struct strbuf *out);

#endif
