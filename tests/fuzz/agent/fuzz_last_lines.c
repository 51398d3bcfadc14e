/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a program's output becomes a short text without anything that steers a terminal. */
#include <stdint.h>
#include <string.h>

#include "agent/kernel/last_lines.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf again = STRBUF_INIT;
    size_t lines = 1;

    last_lines_write((const char *)data, size, &text);
    if (text.len > LAST_LINES_BYTES_MAX || !utf8_is_valid(text.data, text.len))
        __builtin_trap();
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        lines += byte == '\n';
        if (byte == 127 || (byte < ' ' && byte != '\n' && byte != '\t'))
            __builtin_trap();
    }
    if (lines > LAST_LINES_MAX)
        __builtin_trap();
    last_lines_write(text.data, text.len, &again);
    if (again.len > text.len)
        __builtin_trap();
    return 0;
}
