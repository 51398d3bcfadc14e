/* SPDX-License-Identifier: Apache-2.0 */
/* What a mail server says, and what an address is: neither gets bytes into a header or a log. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/smtp.h"
#include "http/smtp_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check_reply(const char *bytes, size_t size)
{
    struct smtp_reply reply;
    struct aq_error err = { 0 };
    ssize_t used = smtp_reply_read(bytes, size, &reply, &err);

    require(used <= (ssize_t)size && used <= SMTP_REPLY_MAX);
    require(used >= 0 || err.text[0]);
    require(size < SMTP_REPLY_MAX || used);
    if (used <= 0)
        return;
    require(bytes[used - 1] == '\n' && reply.code >= 200 && reply.code <= 599);
    for (const char *p = reply.text; *p; p++)
        require(isprint((unsigned char)*p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check_reply(text, size);
    if (smtp_address_is_valid(text))
        require(strlen(text) <= SMTP_ADDRESS_MAX && strchr(text, '@')
                && !strpbrk(text, " <>,;\"\\()\t\r\n"));
    free(text);
    return 0;
}
