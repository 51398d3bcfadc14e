/* SPDX-License-Identifier: Apache-2.0 */
/* graceful_close.h - close a stream without losing the last words */
#ifndef AQ_LINK_GRACEFUL_CLOSE_H
#define AQ_LINK_GRACEFUL_CLOSE_H

#include "http/stream.h"

/* Take the stream over: send what is queued, announce the end, wait until the
 * other side ends too or takes nothing for a while, close. A close(2) with
 * unread input would reset the connection and lose what was just written.
 */
void graceful_close(uv_loop_t *loop, struct stream *stream);

#endif
