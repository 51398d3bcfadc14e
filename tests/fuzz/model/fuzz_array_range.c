/* SPDX-License-Identifier: Apache-2.0 */
/* Indices of arrays: what is taken is written as what gives the same set. */
#include <stdlib.h>
#include <string.h>

#include "model/session_array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, one = STRBUF_INIT,
                                           other = STRBUF_INIT;
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 }, again = { 0 };
    char part[32];
    size_t len;
    struct array_cursor c;
    int64_t limit, before = -1, count = 0;

    strbuf_add(&text, data, size);
    if (session_array_split_name(text.data, &len, part, sizeof(part)) == 0
        && (len + strlen(part) + 2 != strlen(text.data) || text.data[len] != '['))
        abort();
    if (array_set_parse(text.data, 1000, &set, &limit, NULL) < 0)
        return 0;
    array_set_write(&set, &one);
    if (array_set_parse(one.data, 1000, &again, NULL, NULL) < 0)
        abort();
    array_set_write(&again, &other);
    if (strcmp(one.data, other.data) != 0)
        abort();
    c = array_set_seek(&set, 0);
    for (int64_t i; (i = array_cursor_next(&c)) >= 0; before = i, count++)
        if (i <= before || !array_set_has(&set, i))
            abort();
    if (count != array_set_size(&set) || count < 1 || limit < 0)
        abort();
    return 0;
}
