/* SPDX-License-Identifier: Apache-2.0 */
/* tls_module.h - TLS in a file of its own, for programs that rarely need it
 *
 * Loading and starting OpenSSL takes longer than a short request. So the
 * command line links tls_loaded.c in place of tls.c and tls_session.c: the
 * same functions, which load the module aliquot-tls.so when the first context
 * is made. The module is tls.c, tls_session.c, certificate.c and this table.
 */
#ifndef AQ_HTTP_TLS_MODULE_H
#define AQ_HTTP_TLS_MODULE_H

#include "http/certificate.h"
#include "http/tls.h"
#include "http/tls_session.h"

#define TLS_MODULE_FILE "aliquot-tls.so"
#define TLS_MODULE_SYMBOL "aq_tls_module"

struct tls_module {
    const char *version; /* of the program that it belongs to: nothing else may load it */
    int (*context_new)(const struct tls_options *, struct tls_context **, struct aq_error *);
    struct tls_context *(*context_ref)(struct tls_context *);
    void (*context_free)(struct tls_context *);
    int (*context_set_certificate)(struct tls_context *, const char *, const char *,
                                   struct aq_error *);
    int (*session_new)(struct tls_context *, const char *, tls_send_fn *, void *,
                       struct tls_session **, struct aq_error *);
    void (*session_free)(struct tls_session *);
    void (*session_feed)(struct tls_session *, const char *, size_t);
    void (*session_keep)(struct tls_session *);
    int (*session_handshake)(struct tls_session *, struct aq_error *);
    int (*session_read)(struct tls_session *, char *, size_t, struct aq_error *);
    int (*session_write)(struct tls_session *, const char *, size_t, struct aq_error *);
    void (*session_shutdown)(struct tls_session *);
    bool (*session_get_peer)(const struct tls_session *, struct tls_peer *);
    int (*certificate_authority_new)(const char *, int, struct certificate *, struct aq_error *);
    int (*certificate_issue)(const struct certificate *, const char *, int, struct certificate *,
                             struct aq_error *);
    int (*certificate_check)(const struct certificate *, const char *, const char *, int64_t *,
                             struct aq_error *);
};

#endif
