/* SPDX-License-Identifier: Apache-2.0 */
/* request_trace.h - requests to a model service to replay, from CSV or lines of JSON
 *
 * CSV names its columns in the first line, others than these are ignored; Azure's LLM traces have the
 * names in parentheses. A line of JSON is an object with the same members.
 *
 *   time (TIMESTAMP)                   seconds, or a date; the first request comes at second 0
 *   prompt_tokens (ContextTokens)      0 if it is missing
 *   output_tokens (GeneratedTokens)    likewise
 */
#ifndef AQ_SIM_REQUESTS_H
#define AQ_SIM_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct traced_request {
    int64_t usec; /* from the first one */
    int64_t prompt_tokens, output_tokens;
};

struct request_trace {
    struct traced_request *items; /* by time */
    size_t count;
};

/* 'text' ends with a NUL that does not count. -EINVAL with the line. */
int request_trace_read(const char *text, size_t len, struct arena *arena, struct request_trace *ret,
                       struct aq_error *err) AQ_UNTRUSTED;
int request_trace_load(const char *path, struct arena *arena, struct request_trace *ret,
                       struct aq_error *err);

#endif
