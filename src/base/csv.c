/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of comma-separated values by RFC 4180. */
#include "base/csv.h"

#include <string.h>

#include "base/utf8.h"

/* "-5", "+3.2", "-1.5e-7", and no more. */
static bool csv_is_number(const char *text, size_t len)
{
    static const char digits[] = "0123456789";
    const char *at = text + (*text == '-' || *text == '+'), *first = at;

    at += strspn(at, digits);
    if (at > first && *at == '.')
        at += 1 + strspn(at + 1, digits);
    if (at > first && (*at == 'e' || *at == 'E') && at[1] && strchr("+-0123456789", at[1]))
        at += 2 + strspn(at + 2, digits);
    return at > first && at == text + len;
}

/* The mark before what a spreadsheet would take for a formula, also in the wide forms of East Asian
 * ones; behind quotes, so that the mark can be told from a quote that the text had.
 */
static bool csv_begins_formula(const char *text)
{
    static const char *const signs[] = {
        "=", "+", "-", "@", "\t", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"
    };

    text += strspn(text, "'");
    for (size_t i = 0; i < AQ_COUNT(signs); i++)
        if (strncmp(text, signs[i], strlen(signs[i])) == 0)
            return true;
    return false;
}

static bool csv_is_plain(const char *text, size_t len)
{
    return len == 0 || (text[0] != ' ' && text[len - 1] != ' ' && !strpbrk(text, ",\"\n\r"));
}

void csv_write_exact(const char *text, size_t len, struct strbuf *out)
{
    if (csv_is_plain(text, len)) {
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

void csv_write_field(const char *text, size_t len, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;

    utf8_write_printable(text, len, &clean);
    if (clean.len > 1 && csv_begins_formula(clean.data) && !csv_is_number(clean.data, clean.len)) {
        AQ_CLEANUP(strbuf_donep) struct strbuf marked = STRBUF_INIT;

        strbuf_addc(&marked, '\'');
        strbuf_add(&marked, clean.data, clean.len);
        csv_write_exact(marked.data, marked.len, out);
    } else {
        csv_write_exact(clean.data, clean.len, out);
    }
}

const char *csv_field_text(const char *field)
{
    return field[0] == '\'' && csv_begins_formula(field) ? field + 1 : field;
}
