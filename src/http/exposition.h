/* SPDX-License-Identifier: Apache-2.0 */
/* exposition.h - Prometheus' text format, and the listener that serves it
 *
 * Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text
 * format 0.0.4).
 */
#ifndef AQ_HTTP_EXPOSITION_H
#define AQ_HTTP_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"

/* All series of a family follow it at once. 'type': "gauge", "counter" ... */
void exposition_family(struct strbuf *out, const char *name, const char *type, const char *help);

/* One series: begin, its labels, the value. */
void exposition_begin(struct strbuf *out, const char *name);
void exposition_label(struct strbuf *out, const char *label, const char *value);
void exposition_value(struct strbuf *out, double value);

/* The series of one histogram of a family of the type "histogram": NAME_bucket, NAME_sum, NAME_count.
 * 'labels': names and values by turns, then NULL. 'counts' has one element more than 'bounds', for
 * values above the last one; each counts its bucket alone.
 */
void exposition_histogram(struct strbuf *out, const char *name, const char *const *labels,
                          const double *bounds, size_t bound_count, const int64_t *counts,
                          double sum);

/* A family with one series that has no labels. */
void exposition_single(struct strbuf *out, const char *name, const char *type, const char *help,
                       double value);

/* ---- GET /metrics ---- */

struct metrics_server;

struct metrics_conf {
    const char *address;                           /* "127.0.0.1:6003"; NULL, "" or "off" = none */
    const char *tls_cert, *tls_key;                /* NULL = plain HTTP */
    bool insecure;                                 /* plain HTTP where others can reach it */
    void (*write)(void *data, struct strbuf *out); /* append all families */
    /* For GET /health, 200 or 503; NULL = that is not served. */
    bool (*is_healthy)(void *data);
    void *data;
};

/* *ret is NULL without an address. -EINVAL with the setting as field,
 * -errno of bind(2); 'conf' is not needed afterwards.
 */
int metrics_listen(uv_loop_t *loop, const struct metrics_conf *conf, struct metrics_server **ret,
                   struct aq_error *err);
uint16_t metrics_port(const struct metrics_server *server);
/* Nothing is asked any more; the loop must run once more. NULL is fine. */
void metrics_close(struct metrics_server *server);

#endif
