/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - the unit of a control connection
 *
 * 4 bytes length of what follows, 8 bytes seq, 8 bytes ack, all big endian,
 * then the text of one message, or nothing for a mere acknowledgement.
 */
#ifndef AQ_LINK_FRAME_H
#define AQ_LINK_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define FRAME_HEAD_BYTES 20

struct link_frame {
    uint64_t seq; /* 0 = transient */
    uint64_t ack; /* the sender has handled all up to here */
    const char *body;
    size_t body_len;
};

void frame_write_head(unsigned char head[FRAME_HEAD_BYTES], uint64_t seq, uint64_t ack,
                      size_t body_len);

/* Find the first frame in 'bytes': its whole length, with *ret borrowing from
 * 'bytes'; 0 if more bytes are needed; -EBADMSG if the length is impossible
 * or the frame would have more than 'limit' bytes after the length.
 */
ssize_t frame_read(const char *bytes, size_t len, size_t limit,
                   struct link_frame *ret) AQ_UNTRUSTED;

#endif
