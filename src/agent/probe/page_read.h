/* SPDX-License-Identifier: Apache-2.0 */
/* page_read.h - one reading of a program's page of metrics
 *
 * It costs a socket, PAGE_BYTES_MAX of traffic, a line of the page in memory and PAGE_USEC, whatever
 * the program answers. It follows no redirect. Loop's thread only.
 */
#ifndef AQ_AGENT_PROBE_PAGE_READ_H
#define AQ_AGENT_PROBE_PAGE_READ_H

#include <uv.h>

#include "base/clock.h"
#include "http/exposition_scan.h"

#define PAGE_BYTES_MAX (4u << 20)
#define PAGE_USEC (5 * USEC_PER_SEC)

struct page_read;

struct page_target {
    uint16_t port;    /* of 127.0.0.1 */
    const char *path; /* "/metrics" */
    const struct exposition_selector *selectors;
    size_t count; /* at most EXPOSITION_SELECTORS_MAX */
};

/* The sum of each selector; NULL if the page could not be read, and 'text' says why. The reading is
 * gone.
 */
typedef void page_read_fn(void *data, const struct exposition_sum *sums, const char *text);

/* Begin; 'ns' as in probe_attempt_start(). 'target' is borrowed until the callback, which comes
 * later. -errno if the node has no socket for it.
 */
int page_read_start(uv_loop_t *loop, int ns, const struct page_target *target, page_read_fn *fn,
                    void *data, struct page_read **ret, struct aq_error *err) AQ_UNTRUSTED;

/* No callback follows. NULL is fine. */
void page_read_cancel(struct page_read *page);

#endif
