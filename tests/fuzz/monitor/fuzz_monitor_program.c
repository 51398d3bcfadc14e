/* SPDX-License-Identifier: Apache-2.0 */
/* The file 'program' that a monitor reads. */
#include <stdint.h>

#include "monitor/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct strbuf text = STRBUF_INIT;
    struct program program;

    strbuf_add(&text, data, size);
    if (program_parse(&text, &program, NULL) < 0)
        return 0;
    if (program.argv[program.argc] || program.envp[program.envc] || program.argv[0][0] != '/')
        __builtin_trap();
    (void)program_marker(&program);
    program_done(&program);
    return 0;
}
