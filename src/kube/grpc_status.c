/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_status.c - see grpc_status.h */
#include "kube/grpc_status.h"

void grpc_text_write(const char *text, struct strbuf *out)
{
    for (const char *c = text; *c; c++) {
        if (*c >= ' ' && *c <= '~' && *c != '%')
            strbuf_addc(out, *c);
        else
            strbuf_addf(out, "%%%02X", (unsigned char)*c);
    }
}

static int grpc_text_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_text_read(const char *text, size_t len, struct strbuf *out)
{
    len = AQ_MIN(len, (size_t)GRPC_TEXT_MAX);
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c == '%' && i + 2 < len && grpc_text_digit(text[i + 1]) >= 0
            && grpc_text_digit(text[i + 2]) >= 0) {
            c = (char)(grpc_text_digit(text[i + 1]) * 16 + grpc_text_digit(text[i + 2]));
            i += 2;
        }
        strbuf_addc(out, (unsigned char)c < ' ' || c == 0x7f ? ' ' : c);
    }
}

int grpc_status_read(const char *text, size_t len)
{
    int status = 0;

    if (len == 0 || len > 3)
        return GRPC_UNKNOWN;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return GRPC_UNKNOWN;
        status = status * 10 + (text[i] - '0');
    }
    return status;
}
