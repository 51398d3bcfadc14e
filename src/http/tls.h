/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - TLS contexts: certificates, who is trusted, who is refused
 *
 * A context is made once and shared by all connections of a loop; it is
 * reference counted. TLS 1.2 is the oldest version ever spoken.
 */
#ifndef AQ_HTTP_TLS_H
#define AQ_HTTP_TLS_H

#include <stdbool.h>

#include "base/error.h"

struct tls_context;

#define TLS_FINGERPRINT_MAX 65 /* 64 lower-case hex digits of SHA-256 over the DER form */
#define TLS_SERIAL_MAX 64

/* Who is at the other end, from its verified certificate. */
struct tls_peer {
    char common_name[128];
    char serial[TLS_SERIAL_MAX]; /* lower-case hex, no leading zeros */
    char fingerprint[TLS_FINGERPRINT_MAX];
};

/* Asked once per handshake after the chain verified; nonzero refuses, with
 * the reason in 'err'. This is where a revocation list is consulted.
 */
typedef int tls_check_peer_fn(void *data, const struct tls_peer *peer, struct aq_error *err);

struct tls_options {
    bool is_server;

    /* The own certificate (chain, leaf first) and key in PEM: text, or a file
     * where the text is NULL. Required for a server.
     */
    const char *cert_pem, *key_pem;
    const char *cert_file, *key_file;

    /* Whom to trust. A client with none of these trusts the system's store. */
    const char *ca_pem, *ca_file;
    /* Client: believe in nothing but a chain that contains the CA certificate
     * with this SHA-256 fingerprint (the server must send it along).
     */
    const char *ca_fingerprint;

    bool require_peer_cert; /* server: a client certificate of ca_* is needed; false with a
                               ca_*: one is asked for, and verified if it is shown */
    bool tls13_only;
    bool skip_verify; /* client: accept anything; for users who ask for it */
    bool any_name;    /* client: verify the chain, not the host name */
    bool any_use;     /* client: the server's certificate may be one for clients, as agents have */

    tls_check_peer_fn *check_peer; /* may be NULL */
    void *check_data;
};

/* -EINVAL for unusable certificates or keys (err says which and why), -errno
 * for unreadable files. Initialises OpenSSL on first use.
 */
int tls_context_new(const struct tls_options *options, struct tls_context **ret,
                    struct aq_error *err);
struct tls_context *tls_context_ref(struct tls_context *ctx);
void tls_context_free(struct tls_context *ctx); /* drops one reference */
AQ_DEFINE_CLEANUP(struct tls_context, tls_context_free)

/* Read the certificate, key and CA of these options into a living context;
 * connections made from now on use them. On failure nothing changes.
 */
int tls_context_reload(struct tls_context *ctx, struct aq_error *err);

/* The same with another certificate and key of its own, PEM texts. */
int tls_context_set_certificate(struct tls_context *ctx, const char *cert_pem, const char *key_pem,
                                struct aq_error *err);

#endif
