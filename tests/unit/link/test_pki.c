/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's certificates: made, reopened, verified, refused; join tokens. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "link/pki.h"

#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)

static char folder[] = "/tmp/aliquot-pki-XXXXXX";

static struct pki_ca *open_ca(const char *name)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);
    struct pki_ca *ca = NULL;
    struct aq_error err = { 0 };

    assert_row(pki_ca_open(path, &ca, &err) == 0, "%s", err.text);
    return ca;
}

static char *issue(struct pki_ca *ca, const char *id, int days)
{
    AQ_CLEANUP(aq_freep) char *key = NULL;
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    struct aq_error err = { 0 };
    char *cert = NULL;

    assert_int_equal(pki_request_new(id, &key, &csr, &err), 0);
    assert_non_null(strstr(key, "PRIVATE KEY"));
    assert_row(pki_issue_agent(ca, csr, id, days, &cert, NULL, &err) == 0, "%s", err.text);
    return cert;
}

static void test_authority_is_kept(void **state)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *first = open_ca("kept");
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *second = open_ca("kept");
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *other = open_ca("other");
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/kept/ca.key", folder);
    struct stat st;

    (void)state;
    assert_string_equal(pki_ca_cert(first), pki_ca_cert(second));
    assert_memory_equal(pki_ca_fingerprint(first), pki_ca_fingerprint(second),
                        PKI_FINGERPRINT_BYTES);
    assert_memory_not_equal(pki_ca_fingerprint(first), pki_ca_fingerprint(other),
                            PKI_FINGERPRINT_BYTES);
    assert_int_equal(stat(key, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_mixed_up_files_are_refused(void **state)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *a = open_ca("mixed");
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *b = open_ca("other");
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/mixed", folder);
    AQ_CLEANUP(aq_freep) char *cert = aq_format("%s/ca.crt", path);
    struct pki_ca *got = NULL;
    struct aq_error err = { 0 };

    (void)state;
    assert_non_null(a); /* made so that there is something to mix up */
    assert_int_equal(
        fs_write_atomic(AT_FDCWD, cert, pki_ca_cert(b), strlen(pki_ca_cert(b)), 0644, NULL), 0);
    assert_int_equal(pki_ca_open(path, &got, &err), -EINVAL);
    assert_non_null(strstr(err.text, "does not belong"));
    assert_int_equal(fs_write_atomic(AT_FDCWD, cert, "x", 1, 0644, NULL), 0);
    assert_int_equal(pki_ca_open(path, &got, &err), -EINVAL);
}

static void test_agent_certificate(void **state)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *ca = open_ca("kept");
    AQ_CLEANUP(aq_freep) char *cert = issue(ca, "node-1", 10);
    int64_t now = clock_realtime_usec();
    struct pki_cert got;
    struct aq_error err = { 0 };

    (void)state;
    assert_row(pki_verify_agent(ca, cert, now, &got, &err) == 0, "%s", err.text);
    assert_string_equal(got.common_name, "node-1");
    assert_true(strlen(got.serial) > 16);
    /* Clocks of machines may be hours off. */
    assert_true(got.not_before_usec < now - DAY_USEC + DAY_USEC / 100);
    assert_true(got.not_after_usec > now + 9 * DAY_USEC);
}

static void test_refused_certificates(void **state)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *ca = open_ca("kept");
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *other = open_ca("other");
    AQ_CLEANUP(aq_freep) char *own = issue(ca, "node-1", 10);
    AQ_CLEANUP(aq_freep) char *foreign = issue(other, "node-1", 10);
    AQ_CLEANUP(aq_freep) char *server = NULL;
    AQ_CLEANUP(aq_freep) char *key = NULL;
    int64_t now = clock_realtime_usec();
    struct pki_cert got;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(pki_issue_server(ca, NULL, 0, 10, &server, &key, &err), 0);
    assert_int_equal(pki_verify_agent(ca, foreign, now, &got, &err), -EACCES);
    assert_int_equal(pki_verify_agent(ca, server, now, &got, &err), -EACCES);
    assert_int_equal(pki_verify_agent(ca, own, now + 11 * DAY_USEC, &got, &err), -EACCES);
    assert_non_null(strstr(err.text, "expired"));
    assert_int_equal(pki_verify_agent(ca, own, now - DAY_USEC / 2, &got, &err), 0);
    assert_int_equal(pki_verify_agent(ca, own, now - 2 * DAY_USEC, &got, &err), -EACCES);
    assert_int_equal(pki_verify_agent(ca, "nothing", now, &got, &err), -EINVAL);
    assert_int_equal(pki_verify_agent(ca, own, now, &got, &err), 0);
}

static void test_revocation_is_kept(void **state)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *ca = open_ca("kept");
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *again = NULL;
    AQ_CLEANUP(aq_freep) char *cert = issue(ca, "node-1", 10);
    AQ_CLEANUP(aq_freep) char *innocent = issue(ca, "node-1", 10);
    int64_t now = clock_realtime_usec();
    struct pki_cert got;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(pki_cert_read(cert, &got, &err), 0);
    assert_int_equal(pki_revoke(ca, got.serial, &err), 0);
    assert_int_equal(pki_revoke(ca, got.serial, &err), 0);
    assert_int_equal(pki_revoke(ca, "", &err), -EINVAL);
    assert_int_equal(pki_revoke(ca, "12 \n34", &err), -EINVAL);
    assert_int_equal(pki_verify_agent(ca, cert, now, &got, &err), -EACCES);
    assert_string_equal(err.kind, "revoked");
    again = open_ca("kept");
    assert_int_equal(pki_verify_agent(again, cert, now, &got, &err), -EACCES);
    assert_int_equal(pki_verify_agent(again, innocent, now, &got, &err), 0);
}

/* A request whose key is of another kind, or that was tampered with. */
static void test_refused_requests(void **state)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *ca = open_ca("kept");
    AQ_CLEANUP(aq_freep) char *key = NULL;
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    EVP_PKEY *rsa = EVP_RSA_gen(2048);
    X509_REQ *request = X509_REQ_new();
    X509_NAME *other;
    BIO *bio = BIO_new(BIO_s_mem());
    struct aq_error err = { 0 };
    char *text, *cert = NULL;

    (void)state;
    assert_int_equal(X509_REQ_set_pubkey(request, rsa), 1);
    assert_true(X509_REQ_sign(request, rsa, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509_REQ(bio, request), 1);
    assert_int_equal(BIO_write(bio, "", 1), 1);
    assert_true(BIO_get_mem_data(bio, &text) > 0);
    assert_int_equal(pki_issue_agent(ca, text, "n", 1, &cert, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "P-256"));
    BIO_free(bio);
    X509_REQ_free(request);

    assert_int_equal(pki_request_new("n", &key, &csr, &err), 0);
    request = NULL;
    bio = BIO_new_mem_buf(csr, -1);
    request = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
    other = X509_NAME_new(); /* the signature is over another name */
    assert_int_equal(X509_NAME_add_entry_by_txt(other, "CN", MBSTRING_UTF8,
                                                (const unsigned char *)"m", -1, -1, 0),
                     1);
    assert_int_equal(X509_REQ_set_subject_name(request, other), 1);
    X509_NAME_free(other);
    BIO_free(bio);
    bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509_REQ(bio, request), 1);
    assert_int_equal(BIO_write(bio, "", 1), 1);
    assert_true(BIO_get_mem_data(bio, &text) > 0);
    assert_int_equal(pki_issue_agent(ca, text, "n", 1, &cert, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not signed"));
    assert_int_equal(pki_issue_agent(ca, "", "n", 1, &cert, NULL, &err), -EINVAL);
    assert_null(cert);
    BIO_free(bio);
    X509_REQ_free(request);
    EVP_PKEY_free(rsa);
}

static void test_tokens(void **state)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *ca = open_ca("kept");
    struct pki_token token = pki_token_new(ca, INT64_C(1800000000999999)), got = { 0 };
    struct pki_token other = pki_token_new(ca, 0);
    char text[PKI_TOKEN_MAX], secret[PKI_SECRET_TEXT_MAX], hash[PKI_HASH_TEXT_MAX];
    struct aq_error err = { 0 };

    (void)state;
    pki_token_format(&token, text);
    assert_int_equal(pki_token_parse(text, &got, &err), 0);
    assert_memory_equal(got.secret, token.secret, sizeof(token.secret));
    assert_memory_equal(got.ca_fingerprint, pki_ca_fingerprint(ca), PKI_FINGERPRINT_BYTES);
    assert_true(got.expires_usec == INT64_C(1800000000000000));
    assert_memory_not_equal(other.secret, token.secret, sizeof(token.secret));
    assert_int_equal(strlen(pki_token_secret(&token, secret)), 32);
    assert_int_equal(strlen(pki_token_hash(secret, hash)), 64);
    assert_string_equal(pki_token_hash("abc", hash),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

    text[strlen(text) - 1] = '\0';
    assert_int_equal(pki_token_parse(text, &got, &err), -EINVAL);
    assert_int_equal(pki_token_parse("", &got, &err), -EINVAL);
    assert_int_equal(pki_token_parse("aq2.AAAA", &got, &err), -EINVAL);
    pki_token_format(&token, text);
    text[10] = '!';
    assert_int_equal(pki_token_parse(text, &got, &err), -EINVAL);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return fs_remove_tree(AT_FDCWD, folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_authority_is_kept),
        cmocka_unit_test(test_mixed_up_files_are_refused),
        cmocka_unit_test(test_agent_certificate),
        cmocka_unit_test(test_refused_certificates),
        cmocka_unit_test(test_revocation_is_kept),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_tokens),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
