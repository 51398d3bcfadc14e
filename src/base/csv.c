/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of comma-separated values by RFC 4180. */
#include "base/csv.h"

void csv_write_field(const char *text, size_t len, struct strbuf *out)
{
    bool is_plain = len == 0 || (text[0] != ' ' && text[len - 1] != ' ');

    for (size_t i = 0; is_plain && i < len; i++)
        is_plain = text[i] != ',' && text[i] != '"' && text[i] != '\n' && text[i] != '\r';
    if (is_plain) {
        strbuf_add(out, text, len);
        return;
    }
    strbuf_addc(out, '"');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            strbuf_addc(out, '"');
        strbuf_addc(out, text[i]);
    }
    strbuf_addc(out, '"');
}
