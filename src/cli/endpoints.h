/* SPDX-License-Identifier: Apache-2.0 */
/* endpoints.h - the managers of a cluster, in the order in which they are tried
 *
 * Each of them serves everything: a manager that does not lead passes requests on to the one that
 * does. The one that answered last is asked first.
 */
#ifndef AQ_CLI_ENDPOINTS_H
#define AQ_CLI_ENDPOINTS_H

#include <stdbool.h>

#include "http/url.h"

#define ENDPOINTS_MAX 16

struct endpoint {
    char *url; /* without a slash at its end */
    struct address address;
    bool tls;
};

struct endpoints {
    struct endpoint items[ENDPOINTS_MAX];
    size_t count, at;
};

/* "https://a,https://b" with commas or blanks between them. -EINVAL, of kind usage, names the address
 * that is none. After success: endpoints_done().
 */
int endpoints_read(const char *text, struct endpoints *ret, struct aq_error *err);
void endpoints_done(struct endpoints *endpoints);

/* The one in use. */
const struct endpoint *endpoints_get(const struct endpoints *endpoints);
bool endpoints_is_current(const struct endpoints *endpoints, const struct address *address);
/* Use the next one; after the last, the first. */
void endpoints_next(struct endpoints *endpoints);

/* Do two lists have an address in common, and so mean one cluster? False for text that is none. */
bool endpoints_overlap(const char *a, const char *b);

#endif
