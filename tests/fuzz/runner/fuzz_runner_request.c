/* SPDX-License-Identifier: Apache-2.0 */
/* A command as it comes to the runner in a packet. */
#include <stdint.h>
#include <string.h>

#include "runner/protocol.h"
#include "runner/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request request;
    size_t total = 0;

    if (request_parse((const char *)data, size, &request, NULL) < 0)
        return 0;
    for (size_t i = 0; i < request.argc; i++)
        total += strlen(request.argv[i]) + 1;
    for (size_t i = 0; i < request.envc; i++)
        total += strlen(request.envp[i]) + 1;
    if (request.argv[request.argc] || request.envp[request.envc] || !request.rows
        || total > size - sizeof(struct runner_exec) || (request.cwd && request.cwd[0] != '/'))
        __builtin_trap();
    request_done(&request);
    return 0;
}
