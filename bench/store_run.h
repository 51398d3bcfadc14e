/* SPDX-License-Identifier: Apache-2.0 */
/* store_run.h - sessions through store_commit(), as the manager commits them */
#ifndef AQ_BENCH_STORE_RUN_H
#define AQ_BENCH_STORE_RUN_H

#include "store/store.h"
#include "store_pipeline.h"

struct store_run_session {
    struct uuid id, kernel;
    int64_t row;
};

struct store_run {
    struct store *store;
    struct uuid user_id, project_id;
    struct store_run_session *sessions; /* of 'count'; created ones can be placed */
    enum store_work work;
    size_t count, sent, done; /* sessions */
    size_t at_a_time;         /* in a batch */
    int result;
    struct aq_error err;
};

/* Open the database with the development users; errors as of store_open(). Close it in any case. */
int store_run_open(struct store_run *run, const struct store_conf *conf, size_t count,
                   struct aq_error *err);
void store_run_close(struct store_run *run);

/* Do it to all: each creation is a batch of its own, of which 'together' are outstanding, as
 * requests are; placements are batches of as many, one after the other, as turns of the loop
 * propose them. Sessions per second, or a negative errno.
 */
double store_run_measure(struct store_run *run, enum store_work work, size_t together,
                         struct aq_error *err);

#endif
