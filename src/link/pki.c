/* SPDX-License-Identifier: Apache-2.0 */
/* pki.c - the cluster's certificate authority */
#include "link/pki.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "http/x509.h"

#define REVOKED_MAX (16u << 20)

static_assert(PKI_SERIAL_MAX == X509_SERIAL_MAX && PKI_PEM_MAX == X509_PEM_MAX
                  && PKI_FINGERPRINT_BYTES == X509_FINGERPRINT_BYTES,
              "what pki.h says without OpenSSL");

struct pki_ca {
    X509 *cert;
    EVP_PKEY *key;
    char *cert_pem;
    uint8_t fingerprint[PKI_FINGERPRINT_BYTES];
    char *folder;
    struct map revoked; /* serial -> the CA itself, as a mark */
};

/* ---- the authority's files ---- */

static char *pki_file_in(const struct pki_ca *ca, const char *name)
{
    return aq_format("%s/%s", ca->folder, name);
}

static int pki_write_file(const struct pki_ca *ca, const char *name, const char *text, mode_t mode,
                          struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = pki_file_in(ca, name);

    return fs_write_atomic(AT_FDCWD, path, text, strlen(text), mode, err);
}

/* The key is written first: a certificate without key never exists. */
static int pki_create(struct pki_ca *ca, struct aq_error *err)
{
    AQ_CLEANUP(x509_clear_textp) char *key_pem = NULL;
    AQ_CLEANUP(aq_freep) char *cert_pem = NULL;
    int r = x509_key_new(&ca->key, err);

    if (r == 0)
        r = x509_make(&(struct x509_plan){ .common_name = "aliquot cluster authority",
                                           .days = PKI_CA_DAYS,
                                           .use = X509_USE_CA,
                                           .public_key = ca->key,
                                           .signer = ca->key },
                      &ca->cert, err);
    if (r == 0)
        r = x509_key_text(ca->key, &key_pem, err);
    if (r == 0)
        r = x509_text(ca->cert, &cert_pem, err);
    if (r == 0)
        r = pki_write_file(ca, "ca.key", key_pem, 0600, err);
    if (r == 0)
        r = pki_write_file(ca, "ca.crt", cert_pem, 0644, err);
    return r;
}

static int pki_read_file(const struct pki_ca *ca, const char *name, size_t limit,
                         struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = pki_file_in(ca, name);

    return fs_read(AT_FDCWD, path, limit, out, err);
}

static int pki_load_key(struct pki_ca *ca, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = pki_read_file(ca, "ca.key", PKI_PEM_MAX, &text, err);

    if (r == 0)
        r = x509_key_read(text.data, &ca->key, err);
    if (r == 0 && X509_check_private_key(ca->cert, ca->key) != 1)
        r = aq_fail(err, EINVAL, "%s: ca.key does not belong to ca.crt", ca->folder);
    OPENSSL_cleanse(text.data, text.len);
    return r;
}

static int pki_load_revoked(struct pki_ca *ca, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = pki_read_file(ca, "revoked", REVOKED_MAX, &text, err);
    char *at = text.data, *line;

    if (r == -ENOENT)
        return 0;
    while (r == 0 && (line = strsep(&at, "\n"))) {
        if (line[0])
            map_sets(&ca->revoked, line, ca);
    }
    return r;
}

static int pki_load(struct pki_ca *ca, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = pki_read_file(ca, "ca.crt", PKI_PEM_MAX, &text, err);

    if (r == -ENOENT)
        r = pki_create(ca, err);
    else if (r == 0) {
        r = x509_read(text.data, &ca->cert, err);
        if (r == 0)
            r = pki_load_key(ca, err);
    }
    if (r == 0)
        r = x509_text(ca->cert, &ca->cert_pem, err);
    if (r == 0)
        r = x509_fingerprint(ca->cert, ca->fingerprint, err);
    if (r == 0)
        r = pki_load_revoked(ca, err);
    return r;
}

int pki_ca_open(const char *folder, struct pki_ca **ret, struct aq_error *err)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *ca = aq_alloc(sizeof(*ca));
    int r;

    ca->folder = aq_strdup(folder);
    r = fs_mkdirs(folder, 0700, err);
    if (r == 0)
        r = pki_load(ca, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE(ca);
    return 0;
}

void pki_ca_free(struct pki_ca *ca)
{
    if (!ca)
        return;
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key);
    map_done(&ca->revoked);
    free(ca->cert_pem);
    free(ca->folder);
    free(ca);
}

int pki_ca_export_key(const struct pki_ca *ca, char **ret_key, struct aq_error *err)
{
    return x509_key_text(ca->key, ret_key, err);
}

int pki_ca_import(const char *folder, const char *cert, const char *key, struct aq_error *err)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *ca = NULL;
    struct pki_ca files = { .folder = (char *)(uintptr_t)folder };
    int r = fs_mkdirs(folder, 0700, err);

    if (r == 0)
        r = pki_write_file(&files, "ca.key", key, 0600, err);
    if (r == 0)
        r = pki_write_file(&files, "ca.crt", cert, 0600, err);
    return r < 0 ? r : pki_ca_open(folder, &ca, err);
}

const char *pki_ca_cert(const struct pki_ca *ca)
{
    return ca->cert_pem;
}

const uint8_t *pki_ca_fingerprint(const struct pki_ca *ca)
{
    return ca->fingerprint;
}

/* ---- issuing ---- */

int pki_issue_server(struct pki_ca *ca, const char *const *names, size_t name_count, int days,
                     char **ret_cert, char **ret_key, struct aq_error *err)
{
    AQ_CLEANUP(x509_key_freep) EVP_PKEY *key = NULL;
    AQ_CLEANUP(x509_freep) X509 *cert = NULL;
    AQ_CLEANUP(x509_clear_textp) char *key_pem = NULL;
    AQ_CLEANUP(aq_freep) char *cert_pem = NULL;
    int r = x509_key_new(&key, err);

    if (r == 0)
        r = x509_make(&(struct x509_plan){ .common_name = "aliquot manager",
                                           .days = days,
                                           .use = X509_USE_SERVER,
                                           .names = names,
                                           .name_count = name_count,
                                           .public_key = key,
                                           .issuer = ca->cert,
                                           .signer = ca->key },
                      &cert, err);
    if (r == 0)
        r = x509_text(cert, &cert_pem, err);
    if (r == 0)
        r = x509_key_text(key, &key_pem, err);
    if (r < 0)
        return r;
    *ret_cert = AQ_TAKE(cert_pem);
    *ret_key = AQ_TAKE(key_pem);
    return 0;
}

int pki_issue_agent(struct pki_ca *ca, const char *csr, const char *agent_id, int days,
                    char **ret_cert, char ret_serial[PKI_SERIAL_MAX], struct aq_error *err)
{
    AQ_CLEANUP(x509_key_freep) EVP_PKEY *key = NULL;
    AQ_CLEANUP(x509_freep) X509 *cert = NULL;
    char serial[PKI_SERIAL_MAX];
    int r = x509_request_read(csr, &key, err);

    if (r == 0)
        r = x509_make(&(struct x509_plan){ .common_name = agent_id,
                                           .days = days,
                                           .use = X509_USE_CLIENT,
                                           .public_key = key,
                                           .issuer = ca->cert,
                                           .signer = ca->key },
                      &cert, err);
    if (r == 0)
        r = x509_serial(cert, serial, err);
    if (r == 0)
        r = x509_text(cert, ret_cert, err);
    if (r == 0 && ret_serial)
        memcpy(ret_serial, serial, sizeof(serial));
    return r;
}

int pki_request_new(const char *agent_id, char **ret_key, char **ret_csr, struct aq_error *err)
{
    AQ_CLEANUP(x509_key_freep) EVP_PKEY *key = NULL;
    AQ_CLEANUP(x509_clear_textp) char *key_pem = NULL;
    int r = x509_key_new(&key, err);

    if (r == 0)
        r = x509_key_text(key, &key_pem, err);
    if (r == 0)
        r = x509_request_text(key, agent_id, ret_csr, err);
    if (r == 0)
        *ret_key = AQ_TAKE(key_pem);
    return r;
}

/* ---- revoking and verifying ---- */

int pki_sign(const struct pki_ca *ca, const void *bytes, size_t len, unsigned char *ret,
             size_t *inout_len, struct aq_error *err)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool is_signed = md && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, ca->key) == 1
                     && EVP_DigestSign(md, ret, inout_len, bytes, len) == 1;

    EVP_MD_CTX_free(md);
    return is_signed ? 0 : aq_fail(err, EINVAL, "the cluster's CA key cannot sign");
}

int pki_revoke(struct pki_ca *ca, const char *serial, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (!serial[0] || strlen(serial) >= PKI_SERIAL_MAX
        || serial[strspn(serial, "0123456789abcdef")] != '\0')
        return aq_fail_field(err, EINVAL, "serial", "'%s' is not a serial number", serial);
    if (pki_is_revoked(ca, serial))
        return 0;
    map_sets(&ca->revoked, serial, ca);
    for (size_t i = 0; i < ca->revoked.count; i++)
        strbuf_addf(&text, "%s\n", ca->revoked.entries[i].key);
    return pki_write_file(ca, "revoked", text.data, 0644, err);
}

void pki_mark_revoked(struct pki_ca *ca, const char *serial)
{
    map_sets(&ca->revoked, serial, ca);
}

bool pki_is_revoked(const struct pki_ca *ca, const char *serial)
{
    return map_gets(&ca->revoked, serial) != NULL;
}

static int pki_describe(const X509 *cert, struct pki_cert *ret, struct aq_error *err)
{
    struct pki_cert got = { .common_name = "" };
    int r = x509_serial(cert, got.serial, err);

    if (r == 0)
        r = x509_fingerprint(cert, got.fingerprint, err);
    if (r == 0)
        r = x509_common_name(cert, got.common_name, sizeof(got.common_name), err);
    if (r == 0)
        r = x509_times(cert, &got.not_before_usec, &got.not_after_usec, err);
    if (r == 0)
        *ret = got;
    return r;
}

int pki_cert_read(const char *cert, struct pki_cert *ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_freep) X509 *x = NULL;
    int r = x509_read(cert, &x, err);

    return r < 0 ? r : pki_describe(x, ret, err);
}

int pki_verify_agent(const struct pki_ca *ca, const char *cert, int64_t now_usec,
                     struct pki_cert *ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_freep) X509 *x = NULL;
    struct pki_cert got;
    int r = x509_read(cert, &x, err);

    if (r == 0)
        r = x509_verify_client(x, ca->cert, now_usec, err);
    if (r == 0)
        r = pki_describe(x, &got, err);
    if (r < 0)
        return r;
    if (pki_is_revoked(ca, got.serial))
        return aq_fail_kind(err, EACCES, "revoked",
                            "the certificate of '%s' (serial %s) is revoked", got.common_name,
                            got.serial);
    *ret = got;
    return 0;
}
