/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - what "aliquot doctor" finds, and how it is shown
 *
 * A finding is an object {id, part, title, level, text, meaning, remedy}, as
 * check/check.h writes it.
 */
#ifndef AQ_CLI_ADMIN_DOCTOR_H
#define AQ_CLI_ADMIN_DOCTOR_H

#include "cli/cli.h"

/* Append the findings in 'lines', one JSON object a line; other lines are passed over. */
void doctor_add_lines(json_t *findings, const char *lines);

/* Is the cluster that this user is logged in to there, and does it fit this
 * program and this clock? Appends findings.
 */
int doctor_look_at_cluster(struct cli *cli, json_t *findings, struct aq_error *err);

/* For users: a heading for each part, a line for each finding. */
void doctor_show(const struct output *o, const json_t *findings, struct strbuf *out);

/* Does something that is needed not work? What is absent counts for the named
 * parts (count 0 = all were asked for, and none by name).
 */
bool doctor_is_unfit(const json_t *findings, char *const *parts, int count);

#endif
