/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal sends: a reader always comes to a key, or to an end. */
#include <stdint.h>

#include "base/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct key_reader reader = KEY_READER_INIT;

    for (size_t i = 0; i < size; i++)
        if (key_reader_feed(&reader, (char)data[i]) > KEY_OTHER)
            __builtin_trap();
    (void)key_reader_end(&reader);
    if (key_reader_is_amid(&reader) || key_reader_feed(&reader, 'q') != 'q')
        __builtin_trap();
    return 0;
}
