/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as Redis reads them: each word with its length. */
#include <string.h>

#include "redis/redis_client.h"

void redis_command_add(struct redis_command *command, const void *bytes, size_t len)
{
    strbuf_addf(&command->bytes, "$%zu\r\n", len);
    strbuf_add(&command->bytes, bytes, len);
    strbuf_adds(&command->bytes, "\r\n");
    command->count++;
}

void redis_command_adds(struct redis_command *command, const char *text)
{
    redis_command_add(command, text, strlen(text));
}

void redis_command_addf(struct redis_command *command, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    redis_command_add(command, text.data, text.len);
}
