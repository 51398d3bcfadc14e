/* SPDX-License-Identifier: Apache-2.0 */
/* results.h - collects what a plugin hands over during a call, as JSON */
#ifndef AQ_ACCEL_RESULTS_H
#define AQ_ACCEL_RESULTS_H

#include "aliquot/accelerator.h"
#include "base/error.h"
#include "base/strbuf.h"

/* Lists under their names; each is the members so far, with commas. */
struct results {
    struct strbuf identity, info, slots, devices, needs, parts, metrics;
    char error[256];
};

void results_init(struct results *results);
void results_done(struct results *results);

/* The functions that fill it in, to be given to the plugin. */
struct aq_accelerator_out results_out(struct results *results);

/* {"identity":{...},"slots":[...],...} */
void results_write(const struct results *results, struct strbuf *out);

#endif
