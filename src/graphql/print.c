/* SPDX-License-Identifier: Apache-2.0 */
/* Values and strings as GraphQL text, in the form of graphql-js. */
#include "graphql/print.h"

#include "base/utf8.h"

static void print_string(const char *text, size_t len, struct strbuf *out)
{
    static const char names[] = "\"\"\\\\\bb\tt\nn\ff\rr";

    strbuf_addc(out, '"');
    for (size_t i = 0; i < len;) {
        uint32_t code = 0;
        size_t step = utf8_decode(text + i, len - i, &code);
        const char *name = NULL;

        for (const char *p = names; *p && code && !name; p += 2)
            name = (uint32_t)(unsigned char)p[0] == code ? p + 1 : NULL;
        if (name)
            strbuf_addf(out, "\\%c", *name);
        else if (code < 0x20 || (code >= 0x7f && code <= 0x9f))
            strbuf_addf(out, "\\u%04X", code);
        else
            strbuf_add(out, text + i, step);
        i += step ? step : 1;
    }
    strbuf_addc(out, '"');
}

/* Whether every line but the first is empty or begins with white space. */
static bool print_is_indented(const char *text, size_t len)
{
    bool many = false;

    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n' && text[i] != '\r')
            continue;
        if (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n')
            i++;
        many = true;
        if (i + 1 < len && !strchr(" \t\n\r", text[i + 1]))
            return false;
    }
    return many;
}

/* Length in UTF-16 units, for the same line breaks as graphql-js. */
static size_t print_utf16_len(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        n += c >= 0xf0 ? 2 : c < 0x80 || c >= 0xc0;
    }
    return n;
}

static void print_block_string(const char *text, size_t len, struct strbuf *out)
{
    bool single = !memchr(text, '\n', len) && !memchr(text, '\r', len);
    bool force_leading = print_is_indented(text, len);
    bool quotes = len >= 3 && memcmp(text + len - 3, "\"\"\"", 3) == 0;
    bool force_trailing = len > 0 && ((text[len - 1] == '"' && !quotes) || text[len - 1] == '\\');
    bool many = !single || print_utf16_len(text, len) > 70 || force_trailing || force_leading
                || quotes;
    bool skip_leading = single && len > 0 && (text[0] == ' ' || text[0] == '\t');

    strbuf_adds(out, "\"\"\"");
    if ((many && !skip_leading) || force_leading)
        strbuf_addc(out, '\n');
    for (size_t i = 0; i < len; i++) {
        if (len - i >= 3 && memcmp(text + i, "\"\"\"", 3) == 0) {
            strbuf_adds(out, "\\\"\"\"");
            i += 2;
        } else {
            strbuf_addc(out, text[i]);
        }
    }
    if (many || force_trailing)
        strbuf_addc(out, '\n');
    strbuf_adds(out, "\"\"\"");
}

static void print_fields(const struct ast_value *value, struct strbuf *out)
{
    strbuf_addc(out, '{');
    for (const struct ast_argument *field = value->fields; field; field = field->next) {
        strbuf_addf(out, "%s%s: ", field == value->fields ? "" : ", ", field->name.symbol->text);
        print_value(field->value, out);
    }
    strbuf_addc(out, '}');
}

void print_value(const struct ast_value *value, struct strbuf *out)
{
    switch ((enum ast_value_kind)value->kind) {
    case AST_VARIABLE:
        strbuf_addf(out, "$%s", value->symbol->text);
        break;
    case AST_INT:
    case AST_FLOAT:
        strbuf_add(out, value->text, value->count);
        break;
    case AST_STRING:
        print_string(value->text, value->count, out);
        break;
    case AST_BLOCK_STRING:
        print_block_string(value->text, value->count, out);
        break;
    case AST_BOOLEAN:
        strbuf_adds(out, value->boolean ? "true" : "false");
        break;
    case AST_NULL:
        strbuf_adds(out, "null");
        break;
    case AST_ENUM:
        strbuf_adds(out, value->symbol->text);
        break;
    case AST_LIST:
        strbuf_addc(out, '[');
        for (const struct ast_value *item = value->items; item; item = item->next) {
            if (item != value->items)
                strbuf_adds(out, ", ");
            print_value(item, out);
        }
        strbuf_addc(out, ']');
        break;
    case AST_OBJECT:
        print_fields(value, out);
        break;
    }
}
