/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h and tls_session.h by the module: see tls_module.h */
#include "http/tls_module.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/installed.h"
#include "base/strbuf.h"

/* Set by the first context; what has no context never gets to a session. Kept
 * until the process ends. One thread.
 */
static const struct tls_module *module;

static int tls_loaded_load(struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = installed_find(TLS_MODULE_FILE);
    const struct tls_module *found;
    void *library;

    if (!path)
        return aq_fail(err, ENOENT,
                       "https needs " TLS_MODULE_FILE ", which is neither beside this program nor "
                       "in lib/aliquot: install it again");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    found = library ? dlsym(library, TLS_MODULE_SYMBOL) : NULL;
    if (!found)
        return aq_fail(err, ENOEXEC, "cannot load '%s': %s", path, dlerror());
    if (strcmp(found->version, ALIQUOT_VERSION) != 0)
        return aq_fail(err, ENOEXEC, "'%s' is of version %s, this program of " ALIQUOT_VERSION,
                       path, found->version);
    module = found;
    return 0;
}

int tls_context_new(const struct tls_options *options, struct tls_context **ret,
                    struct aq_error *err)
{
    int r = module ? 0 : tls_loaded_load(err);

    return r < 0 ? r : module->context_new(options, ret, err);
}

struct tls_context *tls_context_ref(struct tls_context *ctx)
{
    return module->context_ref(ctx);
}

void tls_context_free(struct tls_context *ctx)
{
    if (ctx)
        module->context_free(ctx);
}

int tls_context_set_certificate(struct tls_context *ctx, const char *cert_pem, const char *key_pem,
                                struct aq_error *err)
{
    return module->context_set_certificate(ctx, cert_pem, key_pem, err);
}

int tls_session_new(struct tls_context *ctx, const char *server_name, tls_send_fn *send, void *data,
                    struct tls_session **ret, struct aq_error *err)
{
    return module->session_new(ctx, server_name, send, data, ret, err);
}

void tls_session_free(struct tls_session *s)
{
    if (s)
        module->session_free(s);
}

void tls_session_feed(struct tls_session *s, const char *bytes, size_t len)
{
    module->session_feed(s, bytes, len);
}

void tls_session_keep(struct tls_session *s)
{
    module->session_keep(s);
}

int tls_session_handshake(struct tls_session *s, struct aq_error *err)
{
    return module->session_handshake(s, err);
}

int tls_session_read(struct tls_session *s, char *out, size_t size, struct aq_error *err)
{
    return module->session_read(s, out, size, err);
}

int tls_session_write(struct tls_session *s, const char *bytes, size_t len, struct aq_error *err)
{
    return module->session_write(s, bytes, len, err);
}

void tls_session_shutdown(struct tls_session *s)
{
    module->session_shutdown(s);
}

bool tls_session_get_peer(const struct tls_session *s, struct tls_peer *ret)
{
    return module->session_get_peer(s, ret);
}

/* ---- certificates ---- */

int certificate_authority_new(const char *common_name, int days, struct certificate *ret,
                              struct aq_error *err)
{
    int r = module ? 0 : tls_loaded_load(err);

    return r < 0 ? r : module->certificate_authority_new(common_name, days, ret, err);
}

int certificate_issue(const struct certificate *authority, const char *name, int days,
                      struct certificate *ret, struct aq_error *err)
{
    int r = module ? 0 : tls_loaded_load(err);

    return r < 0 ? r : module->certificate_issue(authority, name, days, ret, err);
}

int certificate_check(const struct certificate *certificate, const char *authority_cert,
                      const char *name, int64_t *ret_end_usec, struct aq_error *err)
{
    int r = module ? 0 : tls_loaded_load(err);

    return r < 0 ? r
                 : module->certificate_check(certificate, authority_cert, name, ret_end_usec, err);
}
