/* SPDX-License-Identifier: Apache-2.0 */
/* GraphQL text into tokens. */
#include "graphql/lexer.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

enum { C_OTHER, C_NAME, C_DIGIT, C_IGNORED };

static uint8_t lexer_class_of(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return C_NAME;
    if (c >= '0' && c <= '9')
        return C_DIGIT;
    if (c == ' ' || c == '\n' || c == ',' || c == '\t' || c == '\r')
        return C_IGNORED;
    return C_OTHER;
}

static bool lexer_is_name_start(unsigned char c)
{
    return lexer_class_of(c) == C_NAME;
}

static bool lexer_is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

bool syntax_error(struct errors *errors, uint32_t at, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    va_list args;

    strbuf_adds(&text, "Syntax Error: ");
    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    (void)errors_add_text(errors, at, &text);
    return false;
}

const char *token_kind_text(enum lexer_token kind)
{
    static const char *const texts[] = {
        [TOKEN_START] = "<SOF>",
        [TOKEN_END] = "<EOF>",
        [TOKEN_BANG] = "\"!\"",
        [TOKEN_DOLLAR] = "\"$\"",
        [TOKEN_AMP] = "\"&\"",
        [TOKEN_PAREN_L] = "\"(\"",
        [TOKEN_PAREN_R] = "\")\"",
        [TOKEN_SPREAD] = "\"...\"",
        [TOKEN_COLON] = "\":\"",
        [TOKEN_EQUALS] = "\"=\"",
        [TOKEN_AT] = "\"@\"",
        [TOKEN_BRACKET_L] = "\"[\"",
        [TOKEN_BRACKET_R] = "\"]\"",
        [TOKEN_BRACE_L] = "\"{\"",
        [TOKEN_PIPE] = "\"|\"",
        [TOKEN_BRACE_R] = "\"}\"",
        [TOKEN_NAME] = "Name",
        [TOKEN_INT] = "Int",
        [TOKEN_FLOAT] = "Float",
        [TOKEN_STRING] = "String",
        [TOKEN_BLOCK_STRING] = "BlockString",
    };

    return texts[kind];
}

/* The character at a place, as messages show it. */
struct shown {
    char text[16];
};

static struct shown lexer_show_char(const struct lexer *lexer, uint32_t at)
{
    struct shown shown = { "<EOF>" };
    uint32_t code;

    if (at >= lexer->len)
        return shown;
    if (!utf8_decode(lexer->text + at, lexer->len - at, &code))
        code = (unsigned char)lexer->text[at];
    if (code == '"')
        (void)snprintf(shown.text, sizeof(shown.text), "'\"'");
    else if (code >= 0x20 && code <= 0x7e)
        (void)snprintf(shown.text, sizeof(shown.text), "\"%c\"", (char)code);
    else
        (void)snprintf(shown.text, sizeof(shown.text), "U+%04X", code);
    return shown;
}

static bool lexer_name(struct lexer *lexer, struct token *ret)
{
    uint32_t start = lexer->at, at = start + 1;

    while (lexer_is_name_start((unsigned char)lexer->text[at])
           || lexer_is_digit((unsigned char)lexer->text[at]))
        at++;
    *ret = (struct token){ TOKEN_NAME, start, at - start, lexer->text + start };
    lexer->at = at;
    return true;
}

static bool lexer_digits(struct lexer *lexer, uint32_t *at)
{
    if (!lexer_is_digit((unsigned char)lexer->text[*at]))
        return syntax_error(lexer->errors, *at, "Invalid number, expected digit but got: %s.",
                            lexer_show_char(lexer, *at).text);
    while (lexer_is_digit((unsigned char)lexer->text[*at]))
        (*at)++;
    return true;
}

static bool lexer_number(struct lexer *lexer, struct token *ret)
{
    const char *text = lexer->text;
    uint32_t start = lexer->at, at = start;
    bool is_float = false;

    if (text[at] == '-')
        at++;
    if (text[at] == '0') {
        at++;
        if (lexer_is_digit((unsigned char)text[at]))
            return syntax_error(lexer->errors, at, "Invalid number, unexpected digit after 0: %s.",
                                lexer_show_char(lexer, at).text);
    } else if (!lexer_digits(lexer, &at)) {
        return false;
    }
    if (text[at] == '.') {
        is_float = true;
        at++;
        if (!lexer_digits(lexer, &at))
            return false;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        is_float = true;
        at++;
        if (text[at] == '+' || text[at] == '-')
            at++;
        if (!lexer_digits(lexer, &at))
            return false;
    }
    if (text[at] == '.' || lexer_is_name_start((unsigned char)text[at]))
        return syntax_error(lexer->errors, at, "Invalid number, expected digit but got: %s.",
                            lexer_show_char(lexer, at).text);
    *ret = (struct token){ is_float ? TOKEN_FLOAT : TOKEN_INT, start, at - start, text + start };
    lexer->at = at;
    return true;
}

static int lexer_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* The number of four hexadecimal digits, -1 if they are not. The text's NUL ends it. */
static int32_t lexer_hex4(const char *text)
{
    int32_t code = 0;

    for (int i = 0; i < 4; i++) {
        int digit = lexer_hex_digit(text[i]);

        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* The end of 'count' characters (UTF-16 units) from 'at', for messages. */
static int lexer_chars_len(const struct lexer *lexer, uint32_t at, uint32_t count)
{
    uint32_t end = at;

    while (count > 0 && end < lexer->len) {
        uint32_t code;
        size_t len = utf8_decode(lexer->text + end, lexer->len - end, &code);

        end += len ? (uint32_t)len : 1;
        count -= AQ_MIN(count, len == 4 ? 2u : 1u);
    }
    return (int)(end - at);
}

static bool lexer_bad_escape(struct lexer *lexer, uint32_t at, uint32_t count)
{
    return syntax_error(lexer->errors, at, "Invalid Unicode escape sequence: \"%.*s\".",
                        lexer_chars_len(lexer, at, count), lexer->text + at);
}

/* The specification allows it, but resolvers read texts as C strings, where it would cut a name. */
static bool lexer_refuse_nul(struct lexer *lexer, uint32_t at)
{
    return syntax_error(lexer->errors, at, "A string must not contain NUL (U+0000).");
}

/* \u{...} at 'at' */
static bool lexer_escape_braced(struct lexer *lexer, uint32_t at, uint32_t *ret_code,
                                uint32_t *ret_len)
{
    uint32_t code = 0, size = 3;

    while (size < 12) {
        char c = lexer->text[at + size];
        int digit = lexer_hex_digit(c);

        size++;
        if (c == '}') {
            if (size < 5 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
                break;
            *ret_code = code;
            *ret_len = size;
            return true;
        }
        if (digit < 0 || code > 0x7ffffff)
            break;
        code = code << 4 | (uint32_t)digit;
    }
    return lexer_bad_escape(lexer, at, size);
}

/* \uXXXX at 'at', or a pair of them */
static bool lexer_escape_fixed(struct lexer *lexer, uint32_t at, uint32_t *ret_code,
                               uint32_t *ret_len)
{
    const char *text = lexer->text + at;
    int32_t code = lexer_hex4(text + 2);

    if (code >= 0xd800 && code < 0xdc00 && text[6] == '\\' && text[7] == 'u') {
        int32_t low = lexer_hex4(text + 8);

        if (low >= 0xdc00 && low < 0xe000) {
            *ret_code = 0x10000 + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
            *ret_len = 12;
            return true;
        }
    }
    if (code < 0 || (code >= 0xd800 && code < 0xe000))
        return lexer_bad_escape(lexer, at, 6);
    *ret_code = (uint32_t)code;
    *ret_len = 6;
    return true;
}

/* One escape sequence at 'at' in its decoded form. */
static bool lexer_escape(struct lexer *lexer, uint32_t at, char out[4], size_t *ret_out_len,
                         uint32_t *ret_len)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = lexer->text[at + 1];
    const char *found;
    uint32_t code = 0;

    if (c == 'u') {
        bool ok = lexer->text[at + 2] == '{' ? lexer_escape_braced(lexer, at, &code, ret_len)
                                             : lexer_escape_fixed(lexer, at, &code, ret_len);

        if (ok && code == 0)
            return lexer_refuse_nul(lexer, at);
        if (ok)
            *ret_out_len = utf8_write(code, out);
        return ok;
    }
    found = c ? strchr(from, c) : NULL;
    if (!found)
        return syntax_error(lexer->errors, at, "Invalid character escape sequence: \"%.*s\".",
                            lexer_chars_len(lexer, at, 2), lexer->text + at);
    out[0] = to[found - from];
    *ret_out_len = 1;
    *ret_len = 2;
    return true;
}

/* The closing quote of a string whose first character is at 'at', and whether
 * there are escapes on the way.
 */
static bool lexer_find_quote(struct lexer *lexer, uint32_t at, uint32_t *ret_end, bool *ret_escapes)
{
    *ret_escapes = false;
    for (; at < lexer->len && lexer->text[at] != '\n' && lexer->text[at] != '\r'; at++) {
        if (lexer->text[at] == '"') {
            *ret_end = at;
            return true;
        }
        if (lexer->text[at] == '\0')
            return lexer_refuse_nul(lexer, at);
        if (lexer->text[at] == '\\') {
            char out[4];
            size_t out_len;
            uint32_t len;

            *ret_escapes = true;
            if (!lexer_escape(lexer, at, out, &out_len, &len))
                return false;
            at += len - 1;
        }
    }
    return syntax_error(lexer->errors, at, "Unterminated string.");
}

static bool lexer_string(struct lexer *lexer, struct token *ret)
{
    uint32_t start = lexer->at, at = start + 1, end = at;
    bool escapes;
    char *value;
    size_t len = 0;

    if (!lexer_find_quote(lexer, at, &end, &escapes))
        return false;
    value = arena_strndup(lexer->arena, lexer->text + at, end - at);
    if (!escapes)
        len = end - at;
    while (escapes && at < end) { /* an escape is never shorter than what it means */
        uint32_t step = 1;
        size_t out_len = 1;

        if (lexer->text[at] == '\\')
            (void)lexer_escape(lexer, at, value + len, &out_len, &step);
        else
            value[len] = lexer->text[at];
        at += step;
        len += out_len;
    }
    value[len] = '\0';
    *ret = (struct token){ TOKEN_STRING, start, (uint32_t)len, value };
    lexer->at = end + 1;
    return true;
}

struct lexer_line {
    uint32_t at, len;
};

/* Leading white space of a line; its whole length if there is nothing else. */
static uint32_t lexer_indent_of(const char *text, uint32_t len)
{
    uint32_t n = 0;

    while (n < len && (text[n] == ' ' || text[n] == '\t'))
        n++;
    return n;
}

/* The length of the line at 'text' and of the line end after it. */
static size_t lexer_line_len(const char *text, size_t len, size_t *ret_break)
{
    size_t n = 0;

    while (n < len && text[n] != '\n' && text[n] != '\r')
        n++;
    *ret_break = n == len ? 0 : text[n] == '\r' && n + 1 < len && text[n + 1] == '\n' ? 2 : 1;
    return n;
}

/* BlockStringValue() of the specification, in place: the common indentation
 * and blank lines at both ends are taken away, line ends become \n. Returns
 * the new length.
 */
static size_t lexer_dedent(char *text, size_t len)
{
    size_t common = SIZE_MAX, at = 0, end_break, out = 0, kept_end = 0;
    size_t line = 0, first = SIZE_MAX, last = 0;

    for (at = 0;; line++) {
        size_t n = lexer_line_len(text + at, len - at, &end_break);
        size_t indent = lexer_indent_of(text + at, (uint32_t)n);

        if (indent < n) {
            first = AQ_MIN(first, line);
            last = line;
            if (line > 0)
                common = AQ_MIN(common, indent);
        }
        if (!end_break)
            break;
        at += n + end_break;
    }
    if (first == SIZE_MAX)
        return 0;
    for (at = 0, line = 0; line <= last; line++) {
        size_t n = lexer_line_len(text + at, len - at, &end_break);
        size_t cut = line == 0 ? 0 : AQ_MIN(common, n);

        if (line >= first) {
            memmove(text + out, text + at + cut, n - cut);
            out += n - cut;
            kept_end = out;
            text[out++] = '\n';
        }
        at += n + end_break;
    }
    return kept_end;
}

static bool lexer_block_string(struct lexer *lexer, struct token *ret)
{
    const char *text = lexer->text;
    uint32_t start = lexer->at, at = start + 3;
    char *value;
    size_t len = 0;

    while (at < lexer->len && strncmp(text + at, "\"\"\"", 3) != 0) {
        if (text[at] == '\0')
            return lexer_refuse_nul(lexer, at);
        at += strncmp(text + at, "\\\"\"\"", 4) == 0 ? 4 : 1;
    }
    if (at >= lexer->len)
        return syntax_error(lexer->errors, lexer->len, "Unterminated string.");
    value = arena_alloc(lexer->arena, at - start - 3 + 2);
    for (uint32_t i = start + 3; i < at; i++) {
        if (strncmp(text + i, "\\\"\"\"", 4) == 0)
            continue; /* skip only the slash; the quotes follow */
        value[len++] = text[i];
    }
    len = lexer_dedent(value, len);
    value[len] = '\0';
    *ret = (struct token){ TOKEN_BLOCK_STRING, start, (uint32_t)len, value };
    lexer->at = at + 3;
    return true;
}

static bool lexer_punctuator(struct lexer *lexer, struct token *ret)
{
    static const uint8_t kinds[128] = {
        ['!'] = TOKEN_BANG,      ['$'] = TOKEN_DOLLAR,  ['&'] = TOKEN_AMP,
        ['('] = TOKEN_PAREN_L,   [')'] = TOKEN_PAREN_R, [':'] = TOKEN_COLON,
        ['='] = TOKEN_EQUALS,    ['@'] = TOKEN_AT,      ['['] = TOKEN_BRACKET_L,
        [']'] = TOKEN_BRACKET_R, ['{'] = TOKEN_BRACE_L, ['|'] = TOKEN_PIPE,
        ['}'] = TOKEN_BRACE_R,
    };
    unsigned char c = (unsigned char)lexer->text[lexer->at];

    if (c < 128 && kinds[c]) {
        *ret = (struct token){ kinds[c], lexer->at, 0, NULL };
        lexer->at++;
        return true;
    }
    if (strncmp(lexer->text + lexer->at, "...", 3) == 0) {
        *ret = (struct token){ TOKEN_SPREAD, lexer->at, 0, NULL };
        lexer->at += 3;
        return true;
    }
    if (c == '\'')
        return syntax_error(lexer->errors, lexer->at,
                            "Unexpected single quote character ('), did you mean to use a double "
                            "quote (\")?");
    return syntax_error(lexer->errors, lexer->at, "Unexpected character: %s.",
                        lexer_show_char(lexer, lexer->at).text);
}

/* Past white space, commas, comments and byte order marks. */
static void lexer_skip_ignored(struct lexer *lexer)
{
    const char *text = lexer->text;

    for (;;) {
        while (lexer_class_of((unsigned char)text[lexer->at]) == C_IGNORED)
            lexer->at++;
        if (text[lexer->at] == '#') {
            while (lexer->at < lexer->len && text[lexer->at] != '\n' && text[lexer->at] != '\r')
                lexer->at++;
        } else if (memcmp(text + lexer->at, "\xef\xbb\xbf", AQ_MIN(3u, lexer->len - lexer->at + 1))
                   == 0) {
            lexer->at += 3;
        } else {
            return;
        }
    }
}

bool lexer_next(struct lexer *lexer, struct token *ret)
{
    unsigned char c;

    lexer_skip_ignored(lexer);
    if (lexer->at >= lexer->len) {
        *ret = (struct token){ TOKEN_END, lexer->len, 0, NULL };
        return true;
    }
    c = (unsigned char)lexer->text[lexer->at];
    if (lexer_is_name_start(c))
        return lexer_name(lexer, ret);
    if (lexer_is_digit(c) || c == '-')
        return lexer_number(lexer, ret);
    if (c == '"')
        return strncmp(lexer->text + lexer->at, "\"\"\"", 3) == 0 ? lexer_block_string(lexer, ret)
                                                                  : lexer_string(lexer, ret);
    return lexer_punctuator(lexer, ret);
}
