/* SPDX-License-Identifier: Apache-2.0 */
/* Dates, durations, UUIDs, words of a shell and UTF-8, all from the same bytes. */
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/csv.h"
#include "base/jsonw.h"
#include "base/shell_word.h"
#include "base/utf8.h"
#include "base/uuid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cut in two anywhere, both parts of what was UTF-8 are. */
static void check_cut(char *text)
{
    size_t len = strlen(text), at = len / 2, rest = utf8_rest(text + at, len - at);
    bool was_valid = utf8_is_valid(text, len);

    if (was_valid && !utf8_is_valid(text + at + rest, len - at - rest))
        __builtin_trap();
    text[at] = '\0';
    utf8_drop_partial(text);
    if (was_valid && !utf8_is_valid(text, strlen(text)))
        __builtin_trap();
}

/* Each word takes something, and together they are no longer than the text. */
static void check_words(const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf words = STRBUF_INIT;
    const char *next;

    for (const char *at = text; at && *at; at = next)
        if ((next = shell_word_take(at, &words)) && next <= at)
            __builtin_trap();
    if (words.len > strlen(text))
        __builtin_trap();
}

/* What is written steers nothing: only joiners may stand where they join nothing any longer. */
static void check_printable(const char *text, const char *also)
{
    size_t len = strlen(text);
    uint32_t code = 0;
    bool is_shown;

    for (size_t at = 0, size; at < len; at += size) {
        size = utf8_next(text, len, at, &code, &is_shown);
        if (size == 0 || size > len - at
            || (!is_shown && !strchr(also, text[at]) && code != 0x200c && code != 0x200d
                && code != 0xfe0e && code != 0xfe0f))
            __builtin_trap();
    }
}

static void check_shown(const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *copy = strdup(text);
    const char *field = csv_field_text(text);
    bool was_shown;
    uint32_t code;

    if (field != text && (field != text + 1 || text[0] != '\''))
        __builtin_trap();
    utf8_write_printable(text, strlen(text), &out);
    check_printable(out.data, "\n\t");
    was_shown = utf8_is_shown(text, strlen(text), &code);
    utf8_make_printable(copy);
    check_printable(copy, "");
    if (was_shown && strcmp(copy, text) != 0)
        __builtin_trap();
}

static void check_written(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    utf8_write_text((const char *)data, size, &out);
    if (strlen(out.data) != out.len || !utf8_is_valid(out.data, out.len))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    char text[256], iso[CLOCK_ISO_MAX];
    struct uuid id;
    int64_t usec, again;

    check_written(data, size);
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (clock_parse_date(text, &usec) == 0)
        if (clock_parse_date(clock_format_iso(usec, iso), &again) < 0 || again != usec)
            __builtin_trap();
    if (clock_parse_duration(text, &usec) == 0 && usec < 0)
        __builtin_trap();
    if (clock_parse_since(text, &usec, &again) == 0 && (usec > 0) == (again > 0))
        __builtin_trap();
    (void)uuid_parse(text, &id);
    jsonw_strn(&w, (const char *)data, size);
    if (!utf8_is_valid(out.data, out.len))
        __builtin_trap();
    check_words(text);
    check_shown(text);
    check_cut(text);
    return 0;
}
