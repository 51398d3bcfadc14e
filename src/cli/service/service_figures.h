/* SPDX-License-Identifier: Apache-2.0 */
/* service_figures.h - figures of services, revisions, replicas and tokens as members of their rows */
#ifndef AQ_CLI_SERVICE_SERVICE_FIGURES_H
#define AQ_CLI_SERVICE_SERVICE_FIGURES_H

#include "cli/cli.h"

/* Add what columns show of the last minute: "per_second", "tokens_per_second", "error_percent",
 * "p50_ms", "p99_ms", "first_byte_ms". 'figures' has "recent"; it may be the row itself. Members that
 * are not known stay absent.
 */
void service_figures_add_recent(json_t *row, const json_t *figures);

/* Add texts for a record: "recent_text", "tokens_text", "cold_text". */
void service_figures_add_texts(json_t *service);

/* "load" of a service or replica: its requests under way, in relation to how many may be; a number
 * without 'most'.
 */
void service_figures_add_load(json_t *row, json_int_t in_flight, json_int_t most);

/* "spent", "errors" and others of a token. */
void service_figures_adapt_token(json_t *token);

#endif
