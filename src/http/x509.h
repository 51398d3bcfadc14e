/* SPDX-License-Identifier: Apache-2.0 */
/* x509.h - certificates with OpenSSL
 *
 * For what makes them itself: certificate.c, and the cluster's authority. Texts are PEM.
 */
#ifndef AQ_HTTP_X509_H
#define AQ_HTTP_X509_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define X509_FINGERPRINT_BYTES 32 /* SHA-256 over the DER form */
#define X509_SERIAL_MAX 41        /* hex, with NUL */
#define X509_PEM_MAX 16384        /* longer texts are refused */

enum x509_use { X509_USE_CA, X509_USE_SERVER, X509_USE_CLIENT };

struct x509_plan {
    const char *common_name;
    int days;
    enum x509_use use;
    const char *const *names; /* server: further subject names */
    size_t name_count;
    EVP_PKEY *public_key; /* the subject's */
    const X509 *issuer;   /* NULL = self-signed */
    EVP_PKEY *signer;
};

/* A version 3 certificate with a random 127-bit serial number, valid from a day before now, as
 * clocks differ, until 'days' days from now.
 */
int x509_make(const struct x509_plan *plan, X509 **ret, struct aq_error *err);

int x509_key_new(EVP_PKEY **ret, struct aq_error *err);
int x509_key_text(EVP_PKEY *key, char **ret, struct aq_error *err);
int x509_key_read(const char *pem, EVP_PKEY **ret, struct aq_error *err);

int x509_text(const X509 *cert, char **ret, struct aq_error *err);
int x509_read(const char *pem, X509 **ret, struct aq_error *err);

/* A signing request; reading checks signature and curve and gives the key. */
int x509_request_text(EVP_PKEY *key, const char *common_name, char **ret, struct aq_error *err);
int x509_request_read(const char *pem, EVP_PKEY **ret_key, struct aq_error *err);

int x509_serial(const X509 *cert, char ret[X509_SERIAL_MAX], struct aq_error *err);
int x509_fingerprint(const X509 *cert, uint8_t ret[X509_FINGERPRINT_BYTES], struct aq_error *err);
int x509_common_name(const X509 *cert, char *ret, size_t size, struct aq_error *err);
int x509_times(const X509 *cert, int64_t *ret_from_usec, int64_t *ret_to_usec,
               struct aq_error *err);

/* -EACCES with the reason unless 'ca' signed it for client use and 'now_usec'
 * is within its time.
 */
int x509_verify_client(X509 *cert, X509 *ca, int64_t now_usec, struct aq_error *err);

static inline void x509_freep(X509 **cert)
{
    X509_free(*cert);
}

static inline void x509_key_freep(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

/* Wipes before it frees. */
void x509_clear_textp(char **text);

#endif
