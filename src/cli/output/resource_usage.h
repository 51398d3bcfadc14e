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

/* ---- what kernels and sessions use of what they asked for ----
 *
 * Everything that shows it to users shows it by these, so that it is the same
 * everywhere. 'key' is the metric's name. The metric "cpu_util" counts
 * thousandths of a core; users see cores, of the "cpu" of 'slots' (what was
 * asked for: an object of decimal texts, or NULL). Any other is of its capacity.
 */

/* "0.25", "1.58 MiB": a member of the metric. */
void usage_write_used(const struct output *o, const char *key, const json_t *metric,
                      const char *member, struct strbuf *out);

/* "2", "64 MiB"; "-" if it is of nothing. */
void usage_write_limit(const struct output *o, const char *key, const json_t *metric,
                       const json_t *slots, struct strbuf *out);

/* How much of it, 1 = all; negative if it is of nothing. */
double usage_part(const char *key, const json_t *metric, const json_t *slots);

/* Is 'key' "KIND_util" of a kind of accelerator? Then *ret_len is that of KIND. */
bool usage_is_accelerator(const char *key, size_t *ret_len);

/* ---- pictures ---- */

/* "[######..............]"; more than 1 is full. */
void usage_bar(double part, int width, struct strbuf *out);

/* A narrow bar of 'part' for a cell of a table; none if it is negative. */
void usage_cell_bar(const struct output *o, double part, struct strbuf *out);

/* The escape sequence of a load's colour: green, yellow from 70 %, red from 90 %. */
const char *usage_colour(double part);

/* A character for each value, the lowest for 0, the highest for 'top' and more. */
void usage_write_timeline(const struct output *o, const double *values, size_t count, double top,
                          struct strbuf *out);

/* A node and its accelerators: a line with a bar for its cores, its memory and
 * each device. 'statistics' is {"node":{…},"devices":{…}}.
 */
void usage_write_node(const struct output *o, const json_t *statistics, struct strbuf *out);

/* A line for each kind of accelerator that a session has: {"name":"…","used":{metric:…}}. */
void usage_write_accelerators(const struct output *o, const json_t *session, struct strbuf *out);

#endif
