/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values as YAML in block style. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/output/output.h"

/* Words that YAML 1.1 or 1.2 reads as null, a boolean or a number. */
static bool yaml_is_reserved(const char *text)
{
    static const char *const words[] = { "null", "true", "false", "yes", "no", "on",
                                         "off",  "y",    "n",     "inf", "nan" };

    for (size_t i = 0; i < AQ_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Starts with a letter, '_' or '/', so it is no number, date or indicator;
 * then only characters that mean nothing to YAML anywhere.
 */
static bool yaml_is_plain(const char *text, size_t len)
{
    if (len == 0 || strlen(text) != len || yaml_is_reserved(text))
        return false;
    if (!isalpha((unsigned char)text[0]) && text[0] != '_' && text[0] != '/')
        return false;
    for (size_t i = 1; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= 128 || (!isalnum(c) && !strchr("_./@+- ", c)))
            return false;
        if (c == ' ' && (i + 1 == len || text[i + 1] == ' '))
            return false;
    }
    return true;
}

static void yaml_write_escaped(uint32_t code, bool is_shown, const char *bytes, size_t len,
                               struct strbuf *out)
{
    if (code == '"' || code == '\\')
        strbuf_addf(out, "\\%c", (int)code);
    else if (code == '\n')
        strbuf_adds(out, "\\n");
    else if (code == '\t')
        strbuf_adds(out, "\\t");
    else if (!is_shown && code < 0x100)
        strbuf_addf(out, "\\x%02x", (unsigned)code);
    else if (code == 0xfffe || code == 0xffff || (!is_shown && code < 0x10000))
        strbuf_addf(out, "\\u%04x", (unsigned)code);
    else if (!is_shown)
        strbuf_addf(out, "\\U%08x", (unsigned)code);
    else
        strbuf_add(out, bytes, len);
}

static void yaml_write_text(const char *text, size_t len, struct strbuf *out)
{
    if (yaml_is_plain(text, len)) {
        strbuf_add(out, text, len);
        return;
    }
    strbuf_addc(out, '"');
    for (size_t i = 0, size; i < len; i += size) {
        uint32_t code = 0xfffd; /* jansson's texts are UTF-8 */
        bool is_shown;

        size = utf8_next(text, len, i, &code, &is_shown);
        yaml_write_escaped(code, is_shown, text + i, size, out);
    }
    strbuf_addc(out, '"');
}

static void yaml_write_scalar(const json_t *value, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;

    if (json_is_string(value)) {
        yaml_write_text(json_string_value(value), json_string_length(value), out);
        return;
    }
    text = json_dumps(value, OUTPUT_JSON_FLAGS);
    strbuf_adds(out, text);
}

static void yaml_write_block(const json_t *value, int indent, bool in_line, struct strbuf *out);

/* After "key:" or "-": a scalar goes on the same line, a block below. */
static void yaml_write_value(const json_t *value, int indent, bool after_dash, struct strbuf *out)
{
    bool is_empty = (json_is_object(value) && json_object_size(value) == 0)
                    || (json_is_array(value) && json_array_size(value) == 0);

    if (is_empty)
        strbuf_adds(out, json_is_object(value) ? " {}\n" : " []\n");
    else if (json_is_object(value) && after_dash) {
        strbuf_addc(out, ' ');
        yaml_write_block(value, indent, true, out);
    } else if (json_is_object(value) || json_is_array(value)) {
        strbuf_addc(out, '\n');
        yaml_write_block(value, indent, false, out);
    } else {
        strbuf_addc(out, ' ');
        yaml_write_scalar(value, out);
        strbuf_addc(out, '\n');
    }
}

/* 'in_line': the cursor already stands where the first member begins. */
static void yaml_write_block(const json_t *value, int indent, bool in_line, struct strbuf *out)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, key, member) {
            strbuf_addf(out, "%*s", in_line ? 0 : indent, "");
            yaml_write_text(key, strlen(key), out);
            strbuf_addc(out, ':');
            yaml_write_value(member, indent + 2, false, out);
            in_line = false;
        }
        return;
    }
    json_array_foreach(value, i, member) {
        strbuf_addf(out, "%*s-", indent, "");
        yaml_write_value(member, indent + 2, true, out);
    }
}

void yaml_write(const json_t *value, struct strbuf *out)
{
    if (json_is_object(value) && json_object_size(value))
        yaml_write_block(value, 0, false, out);
    else if (json_is_array(value) && json_array_size(value))
        yaml_write_block(value, 0, false, out);
    else if (json_is_object(value) || json_is_array(value))
        strbuf_adds(out, json_is_object(value) ? "{}\n" : "[]\n");
    else {
        yaml_write_scalar(value, out);
        strbuf_addc(out, '\n');
    }
}
