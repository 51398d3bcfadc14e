/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates made on the spot, for TLS tests. */
#include "certs.h"

static char *bio_text(BIO *bio)
{
    char *bytes;
    long len = BIO_get_mem_data(bio, &bytes);
    char *text = strndup(bytes, (size_t)len);

    BIO_free(bio);
    return text;
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;

    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(ext);
    assert_true(X509_add_ext(cert, ext, -1));
    X509_EXTENSION_free(ext);
}

struct cert cert_make(const char *name, long serial, const struct cert *ca, long from_sec,
                      long to_sec)
{
    struct cert c = { .x509 = X509_new(), .key = EVP_EC_gen("P-256") };
    BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_mem());
    X509_NAME *subject = X509_get_subject_name(c.x509);

    assert_non_null(c.key);
    X509_set_version(c.x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x509), serial);
    X509_gmtime_adj(X509_getm_notBefore(c.x509), from_sec);
    X509_gmtime_adj(X509_getm_notAfter(c.x509), to_sec);
    X509_set_pubkey(c.x509, c.key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                               0);
    X509_set_issuer_name(c.x509, ca ? X509_get_subject_name(ca->x509) : subject);
    add_extension(c.x509, ca ? ca->x509 : c.x509, NID_basic_constraints,
                  ca ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (ca)
        add_extension(c.x509, ca->x509, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    assert_true(X509_sign(c.x509, ca ? ca->key : c.key, EVP_sha256()));
    PEM_write_bio_X509(cert_bio, c.x509);
    if (ca)
        PEM_write_bio_X509(cert_bio, ca->x509);
    PEM_write_bio_PrivateKey(key_bio, c.key, NULL, NULL, 0, NULL, NULL);
    c.cert_pem = bio_text(cert_bio);
    c.key_pem = bio_text(key_bio);
    return c;
}

void cert_done(struct cert *c)
{
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
    free(c->cert_pem);
    free(c->key_pem);
}
