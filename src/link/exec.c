/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - what goes over a stream of kind "exec": a command in a container */
#include "link/exec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

void exec_frame_add(struct strbuf *out, enum exec_type type, const void *bytes, size_t len)
{
    uint32_t length = htonl((uint32_t)len);

    strbuf_addc(out, (char)type);
    strbuf_add(out, &length, sizeof(length));
    if (len)
        strbuf_add(out, bytes, len);
}

int exec_frames_read(struct strbuf *held, const char *bytes, size_t len, exec_frame_fn *fn,
                     void *data)
{
    size_t at = 0;
    int r = 0;

    strbuf_add(held, bytes, len);
    while (r == 0 && held->len - at >= EXEC_HEAD_SIZE) {
        uint32_t length;

        memcpy(&length, held->data + at + 1, sizeof(length));
        length = ntohl(length);
        if (length > EXEC_PAYLOAD_MAX)
            return -EPROTO;
        if (held->len - at - EXEC_HEAD_SIZE < length)
            break;
        r = fn(data, (enum exec_type)(unsigned char)held->data[at],
               held->data + at + EXEC_HEAD_SIZE, length);
        at += EXEC_HEAD_SIZE + length;
    }
    if (r == 0)
        strbuf_consume(held, at);
    return r;
}
