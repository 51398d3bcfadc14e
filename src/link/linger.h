/* linger.h - close a stream without losing the last words */
#ifndef AQ_LINK_LINGER_H
#define AQ_LINK_LINGER_H

#include "http/stream.h"

/* Take the stream over: send what is queued, announce the end, wait until the
 * other side ends too or takes nothing for a while, close. A close(2) with
 * unread input would reset the connection and lose what was just written.
 */
void linger_close(uv_loop_t *loop, struct stream *stream);

#endif
