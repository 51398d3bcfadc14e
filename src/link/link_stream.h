/* SPDX-License-Identifier: Apache-2.0 */
/* link_stream.h - a link_stream from the inside: waiting for its connection, then bytes
 *
 * A plain stream ends with its connection. A framed one is records: 4 bytes
 * length (big endian) and as many of data; length 0 is the end of one side.
 * After both have ended the connection can carry the next stream.
 */
#ifndef AQ_LINK_LINK_STREAM_H
#define AQ_LINK_LINK_STREAM_H

#include "base/list.h"
#include "http/stream.h"
#include "link/link.h"
#include "link/connection_reuse.h"

/* A stream that waits for a connection; on_close(-ETIMEDOUT) after a while. */
struct link_stream *link_stream_new(uv_loop_t *loop, const struct uuid *id,
                                    const struct link_stream_ops *ops, void *data);

/* The connection is there; 'rest' are bytes that were read already. 'reuse'
 * gets it after the stream; NULL: the stream is plain.
 */
void link_stream_attach(struct link_stream *stream, struct stream *connection,
                        const struct strbuf *rest, struct connection_reuse *reuse) AQ_UNTRUSTED;

/* There will be no connection, or it is lost: on_close, then gone. */
void link_stream_fail(struct link_stream *stream, const struct aq_error *err);

/* Called when the stream goes, for whichever reason; for the owner's table. */
void link_stream_on_gone(struct link_stream *stream,
                         void (*gone)(void *owner, struct link_stream *stream), void *owner);

bool link_stream_is_attached(const struct link_stream *stream);

#endif
