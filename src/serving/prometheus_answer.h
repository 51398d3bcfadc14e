/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus_answer.h - the number that a query to a Prometheus server results in. Pure
 *
 * The answers of GET and POST /api/v1/query:
 * https://prometheus.io/docs/prometheus/latest/querying/api/
 */
#ifndef AQ_SERVING_PROMETHEUS_ANSWER_H
#define AQ_SERVING_PROMETHEUS_ANSWER_H

#include <stddef.h>

#include "base/error.h"

/* 'status' is that of HTTP. Read a scalar, or a vector with one element: *ret may be NAN or infinite.
 * Errors, in words that may have parts of the server's: -ENODATA: the vector is empty; -E2BIG: it has
 * more elements; -EINVAL: another type, the server refused the query, or it is not such an answer.
 */
int prometheus_answer_read(int status, const char *text, size_t len, double *ret,
                           struct aq_error *err) AQ_UNTRUSTED;

#endif
