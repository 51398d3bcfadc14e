/* SPDX-License-Identifier: Apache-2.0 */
/* resource_usage.h - metrics of the manager in readable units
 *
 * A metric is an object {"current":"…","capacity":"…" or null,"pct":"…",
 * "unit_hint":"…",…} of decimal texts.
 */
#ifndef AQ_CLI_OUTPUT_RESOURCE_USAGE_H
#define AQ_CLI_OUTPUT_RESOURCE_USAGE_H

#include <jansson.h>

#include "base/strbuf.h"
#include "cli/output/output.h"

#define USAGE_BAR_WIDTH 20

/* A member as a number; 0 if it is none. */
double usage_number(const json_t *metric, const char *member);

/* "1.5 GiB", "12.5 %", "3 KiB/s", "72 °C": the member in the metric's unit; "-" without one. */
void usage_write(const struct output *o, const json_t *metric, const char *member,
                 struct strbuf *out);

/* "[######..............]"; more than 1 is full. */
void usage_bar(double fraction, struct strbuf *out);

/* A node and its accelerators: a line with a bar for its cores, its memory and
 * each device. 'statistics' is {"node":{…},"devices":{…}}.
 */
void usage_write_node(const struct output *o, const json_t *statistics, struct strbuf *out);

#endif
