/* SPDX-License-Identifier: Apache-2.0 */
/* exposition_scan.h - chosen series of a page in Prometheus' text format, read in passing
 *
 * One line is held at a time. Several series that match are summed, as a program with labels for its
 * parts (workers, models) is one program to its reader. A series that is NaN has no value and is left
 * out. A line that cannot be read, or is longer than EXPOSITION_LINE_MAX, is counted if it begins with
 * a chosen name: its sum would be too low. Time stamps and exemplars are skipped. Pure.
 */
#ifndef AQ_HTTP_EXPOSITION_SCAN_H
#define AQ_HTTP_EXPOSITION_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"

#define EXPOSITION_LINE_MAX 16384
#define EXPOSITION_SELECTOR_MAX 256 /* bytes of a selector's text */
#define EXPOSITION_LABELS_MAX 8     /* of a selector */
#define EXPOSITION_SELECTORS_MAX 16 /* of a scan */

struct exposition_selector {
    const char *name;
    struct {
        const char *name, *value;
    } labels[EXPOSITION_LABELS_MAX]; /* that a series must have; it may have others */
    size_t label_count;
};

/* Read "name" or 'name{label="value",...}' into 'arena'. -EINVAL, -E2BIG with words that follow the
 * name of a field.
 */
int exposition_selector_parse(const char *text, struct arena *arena,
                              struct exposition_selector *ret, struct aq_error *err) AQ_UNTRUSTED;

struct exposition_sum {
    double value;  /* of all series that match, may be infinite */
    size_t series; /* that match and are not NaN */
    size_t broken; /* lines of this name that cannot be read */
};

struct exposition_scan {
    const struct exposition_selector *selectors; /* borrowed, as 'sums' */
    struct exposition_sum *sums;
    size_t count;
    struct strbuf line; /* that has begun */
    bool is_skipping;   /* the rest of a line that is too long */
};

/* 'sums' has 'count' elements, at most EXPOSITION_SELECTORS_MAX, of which each is the sum for the selector of the same index. */
void exposition_scan_begin(struct exposition_scan *scan,
                           const struct exposition_selector *selectors, size_t count,
                           struct exposition_sum *sums);
/* The next bytes of the page. */
void exposition_scan_take(struct exposition_scan *scan, const char *bytes, size_t len) AQ_UNTRUSTED;
/* The page is over; its last line needs no line feed. The sums are there. */
void exposition_scan_finish(struct exposition_scan *scan);
void exposition_scan_done(struct exposition_scan *scan);

#endif
