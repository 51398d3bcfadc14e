/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - an authority of one's own, and certificates for servers that it signs
 *
 * EC P-256, PEM. For servers that tell their clients themselves whom to trust.
 */
#ifndef AQ_HTTP_CERTIFICATE_H
#define AQ_HTTP_CERTIFICATE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

struct certificate {
    char *cert, *key; /* owned */
};

/* Wipes the key. Zeroed is fine; for AQ_CLEANUP, too. */
static inline void certificate_done(struct certificate *certificate)
{
    free(certificate->cert);
    if (certificate->key)
        explicit_bzero(certificate->key, strlen(certificate->key));
    free(certificate->key);
    *certificate = (struct certificate){ .cert = NULL };
}

int certificate_authority_new(const char *common_name, int days, struct certificate *ret,
                              struct aq_error *err);

/* For a server called 'name'. -EINVAL for an authority that is none, -EKEYEXPIRED if it ends before
 * this certificate would.
 */
int certificate_issue(const struct certificate *authority, const char *name, int days,
                      struct certificate *ret, struct aq_error *err);

/* Can a server called 'name' be believed with it by who trusts the authority's certificate? Its end
 * is not looked at but told. -EINVAL with the reason.
 */
int certificate_check(const struct certificate *certificate, const char *authority_cert,
                      const char *name, int64_t *ret_end_usec, struct aq_error *err) AQ_UNTRUSTED;

#endif
