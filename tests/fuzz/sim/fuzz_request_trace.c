/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to replay: what is read is in order, begins at 0 and stays within its bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "sim/request_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int condition)
{
    if (!condition)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct request_trace trace;
    struct aq_error err = { 0 };

    strbuf_add(&text, data, size); /* as a file that was read: with a NUL behind it */
    if (request_trace_read(text.data, text.len, &arena, &trace, &err) < 0) {
        check(err.text[0]);
        return 0;
    }
    check(trace.count > 0 && trace.items[0].usec == 0);
    for (size_t i = 0; i < trace.count; i++)
        check((i == 0 || trace.items[i].usec >= trace.items[i - 1].usec)
              && trace.items[i].prompt_tokens >= 0 && trace.items[i].output_tokens >= 0);
    return 0;
}
