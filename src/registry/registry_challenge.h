/* SPDX-License-Identifier: Apache-2.0 */
/* registry_challenge.h - what a container registry wants before it answers
 *
 * The value of a WWW-Authenticate header as registries write it: one challenge,
 * Basic realm="..." or Bearer realm="URL",service="...",scope="...". Pure.
 */
#ifndef AQ_REGISTRY_REGISTRY_CHALLENGE_H
#define AQ_REGISTRY_REGISTRY_CHALLENGE_H

#include <stdbool.h>

#include "base/error.h"

#define CHALLENGE_TEXT_MAX 2048 /* bytes of one value */

struct registry_challenge {
    bool is_bearer;        /* a token is to be got at 'realm'; else Basic */
    char *realm;           /* Bearer: a URL; NULL = not said */
    char *service, *scope; /* Bearer: for the query there; NULL = not said */
};

/* -EINVAL: another scheme, a value that is too long, not quoted as it must be, or given twice,
 * a Bearer without realm.
 */
int registry_challenge_parse(const char *text, struct registry_challenge *ret,
                             struct aq_error *err) AQ_UNTRUSTED;
void registry_challenge_done(struct registry_challenge *challenge);

/* The URL that gives the token, to be freed. */
char *registry_challenge_url(const struct registry_challenge *challenge);

#endif
