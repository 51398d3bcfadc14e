/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_session.h - HTTP/2 over a Unix socket: what server and client of gRPC share
 *
 * nghttp2 reads and makes the frames, struct stream carries them. What waits for a peer that does
 * not read is at most GRPC_QUEUE_MAX and one frame; then nothing more is made or read for it.
 */
#ifndef AQ_KUBE_GRPC_SESSION_H
#define AQ_KUBE_GRPC_SESSION_H

#include <nghttp2/nghttp2.h>

#include "http/stream.h"

#define GRPC_QUEUE_MAX 65536u
#define GRPC_HEADERS_MAX 16384u /* of one request or answer, decoded */

struct grpc_session {
    struct stream *stream;
    nghttp2_session *h2;
    bool is_reading; /* what follows is written when that is done */
};

/* A header field for nghttp2, which copies it. */
nghttp2_nv grpc_header(const char *name, const char *value);

nghttp2_session_callbacks *grpc_callbacks_new(void);

/* nghttp2 for one end; 'settings' is sent first. Takes the callbacks. */
void grpc_session_open(struct grpc_session *session, bool is_server,
                       nghttp2_session_callbacks *callbacks, void *data,
                       const nghttp2_settings_entry *settings, size_t count);
/* The stream closes, nghttp2 tells nothing more. */
void grpc_session_close(struct grpc_session *session);

/* Bytes of the peer. -EPROTO: it does not speak HTTP/2, or the connection is over. */
int grpc_session_read(struct grpc_session *session, const char *bytes, size_t len);

/* Send what there is to say, unless bytes are being read: it follows then. -EPROTO as above. */
int grpc_session_flush(struct grpc_session *session);

#endif
