/* SPDX-License-Identifier: Apache-2.0 */
/* TLS in a file of its own, for programs that rarely need it. */
#include "http/tls_module.h"

__attribute__((visibility("default"))) extern const struct tls_module aq_tls_module;

const struct tls_module aq_tls_module = {
    .version = ALIQUOT_VERSION,
    .context_new = tls_context_new,
    .context_ref = tls_context_ref,
    .context_free = tls_context_free,
    .context_set_certificate = tls_context_set_certificate,
    .session_new = tls_session_new,
    .session_free = tls_session_free,
    .session_feed = tls_session_feed,
    .session_keep = tls_session_keep,
    .session_handshake = tls_session_handshake,
    .session_read = tls_session_read,
    .session_write = tls_session_write,
    .session_shutdown = tls_session_shutdown,
    .session_get_peer = tls_session_get_peer,
    .certificate_authority_new = certificate_authority_new,
    .certificate_issue = certificate_issue,
    .certificate_check = certificate_check,
};
