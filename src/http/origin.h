/* SPDX-License-Identifier: Apache-2.0 */
/* origin.h - which web pages may use a server
 *
 * A browser says in Origin which page makes a request, and lets the page read
 * the answer only if Access-Control-Allow-Origin names it. Programs send no
 * Origin and are not concerned, but for the Host of a local server.
 */
#ifndef AQ_HTTP_ORIGIN_H
#define AQ_HTTP_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct request;

struct origin_rules {
    char *const *allowed; /* "https://console.example.org", or "*" for every page; borrowed */
    size_t count;
    /* Only for programs of this machine, and pages of the server's own: what
     * has another Origin, a Host that is no loopback name, or comes from
     * another site is refused, and 'allowed' is not looked at.
     */
    bool is_local;
};

/* Let the request's page read the answer, by headers that are added to it, if
 * it may. -EACCES (generic-forbidden) if the request is refused.
 */
int origin_admit(const struct origin_rules *rules, struct request *req,
                 struct aq_error *err) AQ_UNTRUSTED;

#endif
