/* SPDX-License-Identifier: Apache-2.0 */
/* certs.h - certificates made on the spot, for TLS tests */
#ifndef AQ_TESTS_HTTP_CERTS_H
#define AQ_TESTS_HTTP_CERTS_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "testing.h"

struct cert {
    X509 *x509;
    EVP_PKEY *key;
    char *cert_pem, *key_pem;
};

/* A certificate for 'name' of 'ca' (NULL = itself, a CA), valid from 'from_sec'
 * to 'to_sec' from now. With a CA it is put behind in cert_pem.
 */
struct cert cert_make(const char *name, long serial, const struct cert *ca, long from_sec,
                      long to_sec);

void cert_done(struct cert *c);

#endif
