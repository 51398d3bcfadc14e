/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts: certificates, who is trusted, who is refused. */
#include "http/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/fs.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "http/tls_context.h"

#define PEM_MAX ((size_t)1 << 20)

struct tls_context {
    unsigned refs;
    struct tls_options options; /* texts are copies */
    SSL_CTX *ssl;
    X509 *shown; /* by the last server */
};

SSL_CTX *tls_context_get(const struct tls_context *ctx)
{
    return ctx->ssl;
}

const struct tls_options *tls_context_get_options(const struct tls_context *ctx)
{
    return &ctx->options;
}

int tls_fail(struct aq_error *err, int code, const char *what)
{
    unsigned long last = ERR_peek_last_error();
    const char *reason = last ? ERR_reason_error_string(last) : NULL;

    ERR_clear_error();
    return reason ? aq_fail(err, code, "%s: %s", what, reason) : aq_fail(err, code, "%s", what);
}

/* ---- certificates ---- */

static bool tls_fingerprint_of(X509 *cert, char ret[TLS_FINGERPRINT_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    if (!X509_digest(cert, EVP_sha256(), digest, &len) || len != 32)
        return false;
    for (unsigned i = 0; i < len; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    return true;
}

bool tls_peer_from_cert(X509 *cert, struct tls_peer *ret)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
    char *hex = number ? BN_bn2hex(number) : NULL;
    size_t i = 0, skip;

    BN_free(number);
    memset(ret, 0, sizeof(*ret));
    if (!hex || strlen(hex) >= sizeof(ret->serial) || !tls_fingerprint_of(cert, ret->fingerprint)) {
        OPENSSL_free(hex);
        return false;
    }
    skip = strspn(hex, "0");
    if (!hex[skip] && skip)
        skip--;
    for (; hex[skip + i]; i++)
        ret->serial[i] = (char)(hex[skip + i] | (hex[skip + i] >= 'A' ? 0x20 : 0));
    OPENSSL_free(hex);
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, ret->common_name,
                                    sizeof(ret->common_name));
    return true;
}

static X509 *tls_read_cert(BIO *bio)
{
    return PEM_read_bio_X509(bio, NULL, NULL, NULL);
}

/* ---- verification ---- */

/* Called for each certificate of the chain, leaf last. */
static int tls_on_verify(int ok, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const struct tls_context *ctx = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    struct tls_verdict *verdict = SSL_get_app_data(ssl);
    struct tls_peer peer;

    if (ctx->options.skip_verify)
        return 1;
    if (!ok) {
        if (!verdict->err.code)
            (void)aq_fail(&verdict->err, EPROTO, "certificate refused: %s",
                          X509_verify_cert_error_string(X509_STORE_CTX_get_error(store)));
        return 0;
    }
    if (X509_STORE_CTX_get_error_depth(store) || !ctx->options.check_peer)
        return 1;
    if (!tls_peer_from_cert(X509_STORE_CTX_get_current_cert(store), &peer))
        (void)aq_fail(&verdict->err, EPROTO, "certificate refused: unreadable");
    else if (ctx->options.check_peer(ctx->options.check_data, &peer, &verdict->err) == 0)
        return 1;
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

/* The certificate in what the peer sent that has the fingerprint we believe in. */
static X509 *tls_find_pinned(STACK_OF(X509) * sent, const char *fingerprint)
{
    char text[TLS_FINGERPRINT_MAX];

    for (int i = 0; i < sk_X509_num(sent); i++)
        if (tls_fingerprint_of(sk_X509_value(sent, i), text) && !strcasecmp(text, fingerprint))
            return sk_X509_value(sent, i);
    return NULL;
}

/* Instead of the store: trust the pinned CA alone. */
static int tls_verify_pinned(X509_STORE_CTX *store, const struct tls_context *ctx, SSL *ssl)
{
    struct tls_verdict *verdict = SSL_get_app_data(ssl);
    X509 *ca = tls_find_pinned(X509_STORE_CTX_get0_untrusted(store), ctx->options.ca_fingerprint);
    STACK_OF(X509) *trusted = ca ? sk_X509_new_null() : NULL;
    int ok = 0;

    if (!ca || !X509_check_ca(ca)) {
        (void)aq_fail(
            &verdict->err, EPROTO,
            "certificate refused: the server does not show the CA with fingerprint %.16s…",
            ctx->options.ca_fingerprint);
        X509_STORE_CTX_set_error(store, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT);
    } else if (trusted && sk_X509_push(trusted, ca)) {
        X509_STORE_CTX_set0_trusted_stack(store, trusted);
        ok = X509_verify_cert(store) > 0;
    }
    sk_X509_free(trusted);
    return ok;
}

/* A session keeps the server's certificate, a fifth of its memory: those with the same server share
 * one. The list must be the session's own, whose certificates it owns.
 */
static void tls_share_shown(X509_STORE_CTX *store, struct tls_context *ctx, SSL *ssl)
{
    STACK_OF(X509) *list = SSL_get_peer_cert_chain(ssl);
    X509 *cert = X509_STORE_CTX_get0_cert(store);

    if (!list || list != X509_STORE_CTX_get0_untrusted(store) || sk_X509_value(list, 0) != cert)
        return;
    if (!ctx->shown || X509_cmp(ctx->shown, cert) != 0) {
        X509_free(ctx->shown);
        ctx->shown = cert;
        X509_up_ref(cert);
        return;
    }
    X509_up_ref(ctx->shown);
    (void)sk_X509_set(list, 0, ctx->shown);
    X509_STORE_CTX_set_cert(store, ctx->shown);
    X509_free(cert);
}

/* Of a client, instead of X509_verify_cert(). */
static int tls_on_verify_server(X509_STORE_CTX *store, void *data)
{
    struct tls_context *ctx = data;
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());

    tls_share_shown(store, ctx, ssl);
    return ctx->options.ca_fingerprint ? tls_verify_pinned(store, ctx, ssl)
                                       : X509_verify_cert(store) > 0;
}

/* ---- loading ---- */

/* 'pem', or the contents of 'file' put into 'room'. */
static int tls_get_pem(const char *pem, const char *file, struct strbuf *room, const char **ret,
                       struct aq_error *err)
{
    int r = 0;

    if (!pem && file) {
        r = fs_read(AT_FDCWD, file, PEM_MAX, room, err);
        pem = room->data;
    }
    if (r == 0)
        *ret = pem;
    return r;
}

static int tls_refuse_password(char *buf, int size, int writing, void *data)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)data;
    return 0;
}

static int tls_use_chain(SSL_CTX *ssl, BIO *bio, struct aq_error *err)
{
    X509 *cert = tls_read_cert(bio);
    bool ok = cert && SSL_CTX_use_certificate(ssl, cert);

    X509_free(cert);
    if (!ok)
        return tls_fail(err, EINVAL, "the own certificate is unusable");
    while ((cert = tls_read_cert(bio)))
        if (!SSL_CTX_add0_chain_cert(ssl, cert)) {
            X509_free(cert);
            return tls_fail(err, EINVAL, "the own certificate's chain is unusable");
        }
    ERR_clear_error(); /* of the end of the text */
    return 0;
}

static int tls_use_key(SSL_CTX *ssl, BIO *bio, struct aq_error *err)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, tls_refuse_password, NULL);
    bool ok = key && SSL_CTX_use_PrivateKey(ssl, key) && SSL_CTX_check_private_key(ssl);

    EVP_PKEY_free(key);
    return ok ? 0 : tls_fail(err, EINVAL, "the private key is unusable or not the certificate's");
}

static int tls_use_ca(SSL_CTX *ssl, BIO *bio, struct aq_error *err)
{
    X509 *cert;
    int count = 0;

    while ((cert = tls_read_cert(bio))) {
        bool ok = X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), cert)
                  && SSL_CTX_add_client_CA(ssl, cert);

        X509_free(cert);
        if (!ok)
            return tls_fail(err, EINVAL, "a CA certificate is unusable");
        count++;
    }
    if (!count)
        return tls_fail(err, EINVAL, "no CA certificate found");
    ERR_clear_error();
    return 0;
}

/* Give PEM text to one of the above. */
static int tls_load(SSL_CTX *ssl, const char *pem, const char *file,
                    int (*use)(SSL_CTX *, BIO *, struct aq_error *), struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf room = STRBUF_INIT;
    const char *text = NULL;
    BIO *bio;
    int r;

    r = tls_get_pem(pem, file, &room, &text, err);
    if (r < 0 || !text)
        return r;
    bio = BIO_new_mem_buf(text, -1);
    r = bio ? use(ssl, bio, err) : aq_fail_oom(err);
    BIO_free(bio);
    if (room.cap)
        OPENSSL_cleanse(room.data, room.cap);
    return r < 0 && file && !pem ? aq_error_wrap(err, "%s", file) : r;
}

/* What SSL_CERT_FILE and SSL_CERT_DIR name, else what this build's OpenSSL takes,
 * else where other distributions have it.
 */
static bool tls_trust_system(SSL_CTX *ssl)
{
    static const char *const bundles[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
        "/etc/ssl/ca-bundle.pem",             /* SUSE */
        "/etc/ssl/cert.pem",                  /* Alpine without ca-certificates */
    };

    if (!SSL_CTX_set_default_verify_paths(ssl))
        return false;
    if (getenv(X509_get_default_cert_file_env()) || getenv(X509_get_default_cert_dir_env())
        || access(X509_get_default_cert_dir(), R_OK) == 0)
        return true;
    for (size_t i = 0; i < AQ_COUNT(bundles); i++)
        if (access(bundles[i], R_OK) == 0)
            return SSL_CTX_load_verify_file(ssl, bundles[i]);
    return true;
}

static int tls_load_all(SSL_CTX *ssl, const struct tls_options *o, struct aq_error *err)
{
    bool has_cert = o->cert_pem || o->cert_file, has_ca = o->ca_pem || o->ca_file;
    int r;

    if (has_cert != (o->key_pem || o->key_file) || (o->is_server && !has_cert))
        return aq_fail(err, EINVAL, "TLS needs a certificate and its key");
    if (o->is_server && o->require_peer_cert && !has_ca)
        return aq_fail(err, EINVAL, "client certificates need a CA to check them against");
    r = tls_load(ssl, o->cert_pem, o->cert_file, tls_use_chain, err);
    if (r == 0)
        r = tls_load(ssl, o->key_pem, o->key_file, tls_use_key, err);
    if (r == 0)
        r = tls_load(ssl, o->ca_pem, o->ca_file, tls_use_ca, err);
    if (r == 0 && !o->is_server && !has_ca && !o->ca_fingerprint && !o->skip_verify
        && !tls_trust_system(ssl))
        r = tls_fail(err, EINVAL, "cannot read the system's trusted certificates");
    return r;
}

static void tls_configure(SSL_CTX *ssl, struct tls_context *ctx)
{
    const struct tls_options *o = &ctx->options;

    SSL_CTX_set_app_data(ssl, ctx);
    SSL_CTX_set_min_proto_version(ssl, o->tls13_only ? TLS1_3_VERSION : TLS1_2_VERSION);
    /* No resumption: it would pass by the revocation list. */
    SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ssl, 0);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    if (!o->is_server && o->any_use)
        (void)X509_VERIFY_PARAM_set_purpose(SSL_CTX_get0_param(ssl), X509_PURPOSE_ANY);
    if (!o->is_server) {
        SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, tls_on_verify);
        SSL_CTX_set_cert_verify_callback(ssl, tls_on_verify_server, ctx);
    } else if (o->require_peer_cert)
        SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, tls_on_verify);
    else if (o->ca_pem || o->ca_file)
        SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, tls_on_verify);
}

static int tls_context_load(struct tls_context *ctx, const struct tls_options *options,
                            struct aq_error *err)
{
    SSL_CTX *ssl = SSL_CTX_new(options->is_server ? TLS_server_method() : TLS_client_method());
    int r;

    if (!ssl)
        return tls_fail(err, ENOMEM, "out of memory");
    tls_configure(ssl, ctx);
    r = tls_load_all(ssl, options, err);
    if (r < 0) {
        SSL_CTX_free(ssl);
        return r;
    }
    SSL_CTX_free(ctx->ssl); /* living sessions hold their own reference */
    ctx->ssl = ssl;
    return 0;
}

int tls_context_reload(struct tls_context *ctx, struct aq_error *err)
{
    return tls_context_load(ctx, &ctx->options, err);
}

/* ---- contexts ---- */

/* The texts in a struct tls_options, for copying and freeing. */
static const size_t texts[] = {
    offsetof(struct tls_options, cert_pem),       offsetof(struct tls_options, key_pem),
    offsetof(struct tls_options, cert_file),      offsetof(struct tls_options, key_file),
    offsetof(struct tls_options, ca_pem),         offsetof(struct tls_options, ca_file),
    offsetof(struct tls_options, ca_fingerprint),
};

static char **tls_text_at(struct tls_options *options, size_t i)
{
    return (char **)(void *)((char *)options + texts[i]);
}

/* Let 'options' own its texts. */
static void tls_copy_texts(struct tls_options *options)
{
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        char **text = tls_text_at(options, i);

        *text = aq_strdup(*text);
    }
}

static void tls_clear_key(struct tls_options *options)
{
    char **key = tls_text_at(options, 1);

    if (*key)
        OPENSSL_cleanse(*key, strlen(*key));
}

int tls_context_set_certificate(struct tls_context *ctx, const char *cert_pem, const char *key_pem,
                                struct aq_error *err)
{
    struct tls_options options = ctx->options;
    int r;

    options.cert_pem = aq_strdup(cert_pem);
    options.key_pem = aq_strdup(key_pem);
    r = tls_context_load(ctx, &options, err);
    if (r == 0)
        AQ_SWAP(options, ctx->options);
    tls_clear_key(&options); /* those that are not, or no more, the context's */
    free(*tls_text_at(&options, 0));
    free(*tls_text_at(&options, 1));
    return r;
}

struct tls_context *tls_context_ref(struct tls_context *ctx)
{
    ctx->refs++;
    return ctx;
}

void tls_context_free(struct tls_context *ctx)
{
    if (!ctx || --ctx->refs)
        return;
    tls_clear_key(&ctx->options);
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        free(*tls_text_at(&ctx->options, i));
    SSL_CTX_free(ctx->ssl);
    X509_free(ctx->shown);
    free(ctx);
}

int tls_context_new(const struct tls_options *options, struct tls_context **ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(tls_context_freep) struct tls_context *ctx = aq_alloc(sizeof(*ctx));
    int r;

    ctx->refs = 1;
    ctx->options = *options;
    tls_copy_texts(&ctx->options);
    r = tls_context_reload(ctx, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE(ctx);
    return 0;
}
