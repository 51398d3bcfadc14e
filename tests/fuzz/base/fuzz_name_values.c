/* SPDX-License-Identifier: Apache-2.0 */
/* Files of values that programs hand on: what is accepted is bounded JSON without control bytes. */
#include <stdint.h>
#include <string.h>

#include "base/name_values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (name_values_read((const char *)data, size, &out, &err) < 0) {
        if (out.len != 0 || err.text[0] == '\0')
            __builtin_trap();
        return 0;
    }
    if (out.len > NAME_VALUES_JSON_MAX || strlen(out.data) != out.len || out.data[0] != '{'
        || out.data[out.len - 1] != '}')
        __builtin_trap();
    for (size_t i = 0; i < out.len; i++)
        if ((unsigned char)out.data[i] < 0x20)
            __builtin_trap();
    return 0;
}
