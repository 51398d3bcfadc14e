/* SPDX-License-Identifier: Apache-2.0 */
/* tls_session.h - one TLS connection between bytes that come and bytes that go: inner part of
 * stream.c
 */
#ifndef AQ_HTTP_TLS_SESSION_H
#define AQ_HTTP_TLS_SESSION_H

#include "base/error.h"
#include "base/strbuf.h"
#include "http/tls.h"

struct tls_session;

/* Takes what is to be sent to the peer, all of it, borrowed for the call: at most a record or the
 * library's buffer, 16 KiB and a little. It comes from within the others.
 */
typedef void tls_send_fn(void *data, const char *bytes, size_t len);

/* 'server_name' is what a client verifies and sends (NULL for a server). */
int tls_session_new(struct tls_context *ctx, const char *server_name, tls_send_fn *send, void *data,
                    struct tls_session **ret, struct aq_error *err);
void tls_session_free(struct tls_session *s);

/* Bytes that came from the peer, borrowed until tls_session_keep() has copied what of them was not
 * used.
 */
void tls_session_feed(struct tls_session *s, const char *bytes, size_t len);
void tls_session_keep(struct tls_session *s);

/* Go on with the handshake: 1 once it is done, 0 if more bytes are needed,
 * -EPROTO with the reason (who was refused, and why).
 */
int tls_session_handshake(struct tls_session *s, struct aq_error *err);

/* Plain bytes from the peer: their count, 0 if there are none now, -ENODATA at
 * an orderly end, -EPROTO with the reason.
 */
int tls_session_read(struct tls_session *s, char *out, size_t size, struct aq_error *err);

/* Encrypt. 0 or -EPROTO. */
int tls_session_write(struct tls_session *s, const char *bytes, size_t len, struct aq_error *err);

/* Tell the peer that nothing follows. */
void tls_session_shutdown(struct tls_session *s);

/* False if the peer showed no certificate. */
bool tls_session_get_peer(const struct tls_session *s, struct tls_peer *ret);

#endif
