/* SPDX-License-Identifier: Apache-2.0 */
/* tls_context.h - what tls_session.c needs of a context */
#ifndef AQ_HTTP_TLS_CONTEXT_H
#define AQ_HTTP_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "http/tls.h"

/* The OpenSSL context in use now; borrowed. */
SSL_CTX *tls_context_get(const struct tls_context *ctx);
const struct tls_options *tls_context_get_options(const struct tls_context *ctx);

/* Fill from a certificate. False if it cannot be read. */
bool tls_peer_from_cert(X509 *cert, struct tls_peer *ret);

/* Where a session's verify callback leaves the reason of a refusal. */
struct tls_verdict {
    struct aq_error err; /* code 0 = none */
};

/* Append OpenSSL's own reason and empty its error queue. Returns -code. */
int tls_fail(struct aq_error *err, int code, const char *what);

#endif
