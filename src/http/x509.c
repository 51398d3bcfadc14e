/* SPDX-License-Identifier: Apache-2.0 */
/* x509.c - certificates with OpenSSL */
#include "http/x509.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strbuf.h"

static void x509_bio_freep(BIO **bio)
{
    BIO_free_all(*bio);
}

/* Fill 'err' from OpenSSL's queue and empty that. */
static int x509_fail_openssl(struct aq_error *err, int code, const char *what)
{
    char text[160] = "unknown";
    unsigned long first = ERR_get_error();

    if (first)
        ERR_error_string_n(first, text, sizeof(text));
    ERR_clear_error();
    return aq_fail(err, code, "%s: %s", what, text);
}

void x509_clear_textp(char **text)
{
    if (*text)
        OPENSSL_cleanse(*text, strlen(*text));
    free(*text);
}

/* ---- texts ---- */

/* All that was written to it. */
static char *x509_bio_text(BIO *bio)
{
    char *bytes;
    long len = BIO_get_mem_data(bio, &bytes);

    return aq_strndup(bytes, (size_t)len);
}

static BIO *x509_text_bio(const char *pem)
{
    size_t len = strnlen(pem, X509_PEM_MAX + 1);

    return len > X509_PEM_MAX ? NULL : BIO_new_mem_buf(pem, (int)len);
}

int x509_key_new(EVP_PKEY **ret, struct aq_error *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    if (!key)
        return x509_fail_openssl(err, EIO, "make a key");
    *ret = key;
    return 0;
}

int x509_key_text(EVP_PKEY *key, char **ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_bio_freep) BIO *bio = BIO_new(BIO_s_secmem());

    if (!bio || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return x509_fail_openssl(err, ENOMEM, "write a key");
    *ret = x509_bio_text(bio);
    return 0;
}

int x509_key_read(const char *pem, EVP_PKEY **ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_bio_freep) BIO *bio = x509_text_bio(pem);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "") : NULL;

    if (!key)
        return x509_fail_openssl(err, EINVAL, "not a private key");
    *ret = key;
    return 0;
}

int x509_text(const X509 *cert, char **ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_bio_freep) BIO *bio = BIO_new(BIO_s_mem());

    if (!bio || PEM_write_bio_X509(bio, cert) != 1)
        return x509_fail_openssl(err, ENOMEM, "write a certificate");
    *ret = x509_bio_text(bio);
    return 0;
}

int x509_read(const char *pem, X509 **ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_bio_freep) BIO *bio = x509_text_bio(pem);
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    if (!cert)
        return x509_fail_openssl(err, EINVAL, "not a certificate");
    *ret = cert;
    return 0;
}

/* ---- requests ---- */

int x509_request_text(EVP_PKEY *key, const char *common_name, char **ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_bio_freep) BIO *bio = BIO_new(BIO_s_mem());
    X509_REQ *request = X509_REQ_new();
    X509_NAME *name = request ? X509_REQ_get_subject_name(request) : NULL;
    int r = 0;

    if (!bio || !name
        || X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name,
                                      -1, -1, 0)
               != 1
        || X509_REQ_set_pubkey(request, key) != 1 || X509_REQ_sign(request, key, EVP_sha256()) == 0
        || PEM_write_bio_X509_REQ(bio, request) != 1)
        r = x509_fail_openssl(err, EINVAL, "make a signing request");
    X509_REQ_free(request);
    if (r == 0)
        *ret = x509_bio_text(bio);
    return r;
}

static bool x509_is_p256(EVP_PKEY *key)
{
    char group[32] = "";
    size_t len;

    return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC
           && EVP_PKEY_get_group_name(key, group, sizeof(group), &len) == 1
           && strcmp(group, "prime256v1") == 0;
}

int x509_request_read(const char *pem, EVP_PKEY **ret_key, struct aq_error *err)
{
    AQ_CLEANUP(x509_bio_freep) BIO *bio = x509_text_bio(pem);
    X509_REQ *request = bio ? PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = request ? X509_REQ_get_pubkey(request) : NULL;
    int r = 0;

    if (!key)
        r = x509_fail_openssl(err, EINVAL, "not a signing request");
    else if (!x509_is_p256(key))
        r = aq_fail_field(err, EINVAL, "csr", "the key of the signing request is not EC P-256");
    else if (X509_REQ_verify(request, key) != 1)
        r = aq_fail_field(err, EINVAL, "csr", "the signing request is not signed by its own key");
    ERR_clear_error();
    X509_REQ_free(request);
    if (r < 0)
        EVP_PKEY_free(key);
    else
        *ret_key = key;
    return r;
}

/* ---- making ---- */

static int x509_add_extension(X509 *cert, const X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *extension;
    int ok;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, (X509 *)(uintptr_t)(issuer ? issuer : cert), cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ok = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool x509_add_name(GENERAL_NAMES *names, const char *text)
{
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(text);
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *host = address ? NULL : ASN1_IA5STRING_new();

    ERR_clear_error(); /* a host name is no error */
    if (!name || (!address && (!host || ASN1_STRING_set(host, text, -1) != 1))
        || sk_GENERAL_NAME_push(names, name) <= 0) {
        ASN1_OCTET_STRING_free(address);
        ASN1_IA5STRING_free(host);
        GENERAL_NAME_free(name);
        return false;
    }
    if (address)
        GENERAL_NAME_set0_value(name, GEN_IPADD, address);
    else
        GENERAL_NAME_set0_value(name, GEN_DNS, host);
    return true;
}

static int x509_add_names(X509 *cert, const struct x509_plan *plan)
{
    static const char *const always[] = { "localhost", "127.0.0.1", "::1" };
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    bool ok = names != NULL;

    for (size_t i = 0; ok && i < AQ_COUNT(always); i++)
        ok = x509_add_name(names, always[i]);
    for (size_t i = 0; ok && i < plan->name_count; i++)
        ok = x509_add_name(names, plan->names[i]);
    ok = ok && X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
    GENERAL_NAMES_free(names);
    return ok;
}

static int x509_add_extensions(X509 *cert, const struct x509_plan *plan)
{
    bool is_ca = plan->use == X509_USE_CA;

    if (!x509_add_extension(cert, plan->issuer, NID_basic_constraints,
                            is_ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE")
        || !x509_add_extension(cert, plan->issuer, NID_key_usage,
                               is_ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature")
        || !x509_add_extension(cert, plan->issuer, NID_subject_key_identifier, "hash")
        || !x509_add_extension(cert, plan->issuer, NID_authority_key_identifier, "keyid"))
        return 0;
    if (plan->use == X509_USE_SERVER)
        return x509_add_extension(cert, plan->issuer, NID_ext_key_usage, "serverAuth")
               && x509_add_names(cert, plan);
    return is_ca || x509_add_extension(cert, plan->issuer, NID_ext_key_usage, "clientAuth");
}

static int x509_set_serial(X509 *cert)
{
    BIGNUM *number = BN_new();
    int ok = number && BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY)
             && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));

    BN_free(number);
    return ok;
}

/* Machines of a cluster accept each other's certificates though their clocks are hours apart, as with
 * one that takes local time for UTC until NTP has set it.
 */
static int x509_set_times(X509 *cert, int days)
{
    time_t now = (time_t)(clock_realtime_usec() / USEC_PER_SEC);

    return X509_time_adj_ex(X509_getm_notBefore(cert), -1, 0, &now)
           && X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, &now);
}

int x509_make(const struct x509_plan *plan, X509 **ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_freep) X509 *cert = X509_new();
    X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;

    if (!name
        || X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                      (const unsigned char *)plan->common_name, -1, -1, 0)
               != 1
        || !X509_set_issuer_name(cert, plan->issuer ? X509_get_subject_name(plan->issuer) : name)
        || !X509_set_version(cert, X509_VERSION_3) || !x509_set_serial(cert)
        || !x509_set_times(cert, plan->days) || !X509_set_pubkey(cert, plan->public_key)
        || !x509_add_extensions(cert, plan) || !X509_sign(cert, plan->signer, EVP_sha256()))
        return x509_fail_openssl(err, EINVAL, "make a certificate");
    *ret = AQ_TAKE(cert);
    return 0;
}

/* ---- reading ---- */

int x509_serial(const X509 *cert, char ret[X509_SERIAL_MAX], struct aq_error *err)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
    char *hex = number ? BN_bn2hex(number) : NULL;
    const char *at = hex;
    int r = 0;

    while (at && at[0] == '0' && at[1])
        at++;
    if (!at || BN_is_negative(number) || strlen(at) >= X509_SERIAL_MAX) {
        r = aq_fail(err, EINVAL, "the certificate's serial number is unusable");
    } else {
        size_t i = 0;

        for (; at[i]; i++)
            ret[i] = at[i] >= 'A' ? (char)(at[i] | 0x20) : at[i];
        ret[i] = '\0';
    }
    OPENSSL_free(hex);
    BN_free(number);
    return r;
}

int x509_fingerprint(const X509 *cert, uint8_t ret[X509_FINGERPRINT_BYTES], struct aq_error *err)
{
    unsigned len = 0;

    if (X509_digest(cert, EVP_sha256(), ret, &len) != 1 || len != X509_FINGERPRINT_BYTES)
        return x509_fail_openssl(err, EIO, "fingerprint");
    return 0;
}

int x509_common_name(const X509 *cert, char *ret, size_t size, struct aq_error *err)
{
    const X509_NAME *name = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    ASN1_STRING *text = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    unsigned char *utf8 = NULL;
    int len = text ? ASN1_STRING_to_UTF8(&utf8, text) : -1;
    int r = 0;

    if (len < 0 || (size_t)len >= size || memchr(utf8, '\0', (size_t)len)) {
        r = aq_fail(err, EINVAL, "the certificate's common name is unusable");
    } else {
        memcpy(ret, utf8, (size_t)len);
        ret[len] = '\0';
    }
    OPENSSL_free(utf8);
    ERR_clear_error();
    return r;
}

static bool x509_time_usec(const ASN1_TIME *time, int64_t *ret)
{
    struct tm tm = { .tm_year = 0 };

    if (ASN1_TIME_to_tm(time, &tm) != 1)
        return false;
    *ret = (int64_t)timegm(&tm) * USEC_PER_SEC;
    return true;
}

int x509_times(const X509 *cert, int64_t *ret_from_usec, int64_t *ret_to_usec, struct aq_error *err)
{
    if (!x509_time_usec(X509_get0_notBefore(cert), ret_from_usec)
        || !x509_time_usec(X509_get0_notAfter(cert), ret_to_usec)) {
        ERR_clear_error();
        return aq_fail(err, EINVAL, "the certificate's validity is unusable");
    }
    return 0;
}

int x509_verify_client(X509 *cert, X509 *ca, int64_t now_usec, struct aq_error *err)
{
    X509_STORE *trusted = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int r = 0;

    if (!trusted || !ctx || X509_STORE_add_cert(trusted, ca) != 1
        || X509_STORE_CTX_init(ctx, trusted, cert, NULL) != 1) {
        r = x509_fail_openssl(err, ENOMEM, "verify a certificate");
    } else {
        X509_STORE_CTX_set_time(ctx, 0, (time_t)(now_usec / USEC_PER_SEC));
        (void)X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_CLIENT);
        if (X509_verify_cert(ctx) != 1)
            r = aq_fail(err, EACCES, "the certificate is refused: %s",
                        X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
    }
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(trusted);
    ERR_clear_error();
    return r;
}
