/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - see certificate.h */
#include "http/certificate.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "http/x509.h"

/* With a key of its own; signed by itself where the plan has no signer. */
static int certificate_make(struct x509_plan *plan, struct certificate *ret, struct aq_error *err)
{
    AQ_CLEANUP(certificate_done) struct certificate made = { .cert = NULL };
    AQ_CLEANUP(x509_key_freep) EVP_PKEY *key = NULL;
    AQ_CLEANUP(x509_freep) X509 *cert = NULL;
    int r = x509_key_new(&key, err);

    plan->public_key = key;
    if (!plan->signer)
        plan->signer = key;
    if (r == 0)
        r = x509_make(plan, &cert, err);
    if (r == 0)
        r = x509_text(cert, &made.cert, err);
    if (r == 0)
        r = x509_key_text(key, &made.key, err);
    if (r < 0)
        return r;
    *ret = made;
    made = (struct certificate){ .cert = NULL };
    return 0;
}

int certificate_authority_new(const char *common_name, int days, struct certificate *ret,
                              struct aq_error *err)
{
    struct x509_plan plan = { .common_name = common_name, .days = days, .use = X509_USE_CA };

    return certificate_make(&plan, ret, err);
}

int certificate_issue(const struct certificate *authority, const char *name, int days,
                      struct certificate *ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_key_freep) EVP_PKEY *key = NULL;
    AQ_CLEANUP(x509_freep) X509 *cert = NULL;
    int64_t from = 0, end = 0;
    struct x509_plan plan = { .common_name = "aliquot server",
                              .days = days,
                              .use = X509_USE_SERVER,
                              .names = &name,
                              .name_count = 1 };
    int r = x509_read(authority->cert, &cert, err);

    if (r == 0)
        r = x509_key_read(authority->key, &key, err);
    if (r == 0)
        r = x509_times(cert, &from, &end, err);
    if (r == 0 && X509_check_private_key(cert, key) != 1)
        r = aq_fail(err, EINVAL, "the authority's key is not that of its certificate");
    ERR_clear_error();
    if (r == 0 && end < clock_realtime_usec() + days * INT64_C(86400) * USEC_PER_SEC)
        r = aq_fail(err, EKEYEXPIRED, "the authority ends within %d days", days);
    plan.issuer = cert;
    plan.signer = key;
    return r < 0 ? r : certificate_make(&plan, ret, err);
}

static int certificate_verify(X509 *cert, EVP_PKEY *key, X509 *ca, const char *name,
                              struct aq_error *err)
{
    int r = 0;

    if (X509_check_private_key(cert, key) != 1)
        r = aq_fail(err, EINVAL, "the key is not that of the certificate");
    else if (X509_check_host(cert, name, 0, 0, NULL) != 1)
        r = aq_fail(err, EINVAL, "the certificate is not for %s", name);
    else if (X509_verify(cert, X509_get0_pubkey(ca)) != 1)
        r = aq_fail(err, EINVAL, "the certificate is not of this authority");
    ERR_clear_error();
    return r;
}

int certificate_check(const struct certificate *certificate, const char *authority_cert,
                      const char *name, int64_t *ret_end_usec, struct aq_error *err)
{
    AQ_CLEANUP(x509_key_freep) EVP_PKEY *key = NULL;
    AQ_CLEANUP(x509_freep) X509 *cert = NULL, *ca = NULL;
    int64_t from;
    int r = x509_read(certificate->cert, &cert, err);

    if (r == 0)
        r = x509_key_read(certificate->key, &key, err);
    if (r == 0)
        r = x509_read(authority_cert, &ca, err);
    if (r == 0)
        r = certificate_verify(cert, key, ca, name, err);
    return r < 0 ? r : x509_times(cert, &from, ret_end_usec, err);
}
