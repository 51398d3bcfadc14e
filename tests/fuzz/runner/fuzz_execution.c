/* SPDX-License-Identifier: Apache-2.0 */
/* A line that asks the executor for something; then what a run writes, cut into replies. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runner/execution.h"
#include "runner/languages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All that is written is told, whatever it is; UTF-8 is for who reads the JSON. */
static void fuzz_execution_run(const uint8_t *data, size_t size)
{
    const struct execution_request request = { .verb = EXECUTION_RUN, .id = "a", .len = 0 };
    struct execution *run = execution_new(&request, "", 0);
    size_t at = 0;

    if (!run)
        return;
    while (at < size) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        size_t len = AQ_MIN(size - at, (size_t)(data[at] >> 3) + 1);

        execution_add(run, (enum execution_kind)(data[at] % EXECUTION_STATUS),
                      (const char *)data + at, len);
        if (data[at] & 4 && execution_take(run, &out))
            __builtin_trap(); /* it is not over */
        at += len;
    }
    execution_add_status(run, EXECUTION_FINISHED, 0);
    for (bool is_over = false; !is_over;) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        is_over = execution_take(run, &out);
    }
    if (run->kept)
        __builtin_trap();
    execution_free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct execution_request request;
    struct language language;
    char *line = malloc(size + 1);

    if (!line)
        return 0;
    memcpy(line, data, size);
    line[size] = '\0';
    if (language_parse(line, &language) && (!language.name[0] || !language.command[0]))
        __builtin_trap();
    if (execution_parse(line, &request)
        && (request.len > EXECUTION_CODE_MAX || strlen(request.id) > EXECUTION_ID_MAX))
        __builtin_trap();
    free(line);
    fuzz_execution_run(data, size);
    return 0;
}
