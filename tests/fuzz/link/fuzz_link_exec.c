/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a command's stream, cut into pieces as the first byte says. */
#include <stdint.h>
#include <string.h>

#include "link/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_frame(void *data, enum exec_type type, const char *bytes, size_t len)
{
    struct strbuf *again = data;

    exec_frame_add(again, type, bytes, len);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf held = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf again = STRBUF_INIT;
    size_t step = size ? data[0] + 1u : 1, at = 1;
    int r = 0;

    for (; r == 0 && at < size; at += step)
        r = exec_frames_read(&held, (const char *)data + at, AQ_MIN(step, size - at), on_frame,
                             &again);
    /* what was read and what is held are what came, as long as it made sense */
    if (r == 0 && size
        && (again.len + held.len != size - 1 || memcmp(again.data, data + 1, again.len) != 0))
        __builtin_trap();
    return 0;
}
