/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for users, in lines of the terminal's width. */
#include "cli/output/prose.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/output/output.h"

int prose_terminal_width(int fd)
{
    struct winsize size;

    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* ---- lines ---- */

/* Is the blank at text[at] between a number and its unit? */
static bool prose_is_in_amount(const char *text, size_t at, size_t len)
{
    static const char *const units[] = { "byte", "KiB", "MiB", "GiB", "TiB", "s", "min", "h", "d" };

    if (!at || text[at - 1] < '0' || text[at - 1] > '9')
        return false;
    for (size_t i = 0; i < AQ_COUNT(units); i++) {
        size_t unit = strlen(units[i]);

        if (len - at > unit && strncmp(text + at + 1, units[i], unit) == 0
            && (len - at - 1 == unit || !isalpha((unsigned char)text[at + 1 + unit])
                || units[i][0] == 'b'))
            return true;
    }
    return false;
}

/* Up to the first blank at which a line may end. */
static size_t prose_word_size(const char *text, size_t len)
{
    size_t at = 0;

    while (at < len && (text[at] != ' ' || prose_is_in_amount(text, at, len)))
        at++;
    return at;
}

size_t prose_fit(const char *text, size_t len, size_t width, size_t *ret_next)
{
    size_t end = prose_word_size(text, len), next = end;

    while (next < len) {
        size_t start = next, stop;

        while (start < len && text[start] == ' ')
            start++;
        stop = start + prose_word_size(text + start, len - start);
        if (utf8_width(text, stop) > width) {
            *ret_next = start;
            return end;
        }
        end = next = stop;
    }
    *ret_next = len;
    return end;
}

size_t prose_longest_word(const char *text, size_t len)
{
    size_t longest = 0;

    for (size_t at = 0; at < len;) {
        size_t word = prose_word_size(text + at, len - at);

        longest = AQ_MAX(longest, utf8_width(text + at, word));
        at += word + 1;
    }
    return longest;
}

/* Blanks at the front, and the dash of a list's item. */
static size_t prose_margin(const char *line, size_t len)
{
    size_t margin = strspn(line, " ");

    if (margin + 1 < len && line[margin] == '-' && line[margin + 1] == ' ')
        margin += 2;
    return AQ_MIN(margin, len);
}

static void prose_wrap_words(const char *line, size_t len, size_t margin, size_t width,
                             struct strbuf *out)
{
    size_t next;

    while (len) {
        size_t fits = prose_fit(line, len, width > margin ? width - margin : 1, &next);

        strbuf_add(out, line, fits);
        line += next;
        len -= next;
        if (len)
            strbuf_addf(out, "\n%*s", (int)margin, "");
    }
}

static void prose_wrap_line(const char *line, size_t len, size_t width, struct strbuf *out)
{
    size_t margin = prose_margin(line, len);

    strbuf_add(out, line, margin);
    prose_wrap_words(line + margin, len - margin, margin, width, out);
}

void prose_wrap_behind(const char *text, size_t margin, int width, struct strbuf *out)
{
    if (width > 0)
        prose_wrap_words(text, strlen(text), margin, (size_t)width, out);
    else
        strbuf_adds(out, text);
}

void prose_wrap(const char *text, int width, struct strbuf *out)
{
    for (;;) {
        size_t len = strcspn(text, "\n");

        if (width > 0)
            prose_wrap_line(text, len, (size_t)width, out);
        else
            strbuf_add(out, text, len);
        if (!text[len])
            return;
        strbuf_addc(out, '\n');
        text += len + 1;
    }
}

/* ---- times ---- */

/* Bytes of a date in UTC at the front, as the manager writes them; 0 = there is none. */
static size_t prose_date_size(const char *text, int64_t *ret_usec)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    char date[CLOCK_ISO_MAX];
    size_t len;

    for (len = 0; shape[len]; len++)
        if (shape[len] == 'd' ? text[len] < '0' || text[len] > '9' : text[len] != shape[len])
            return 0;
    if (text[len] == '.')
        len += 1 + strspn(text + len + 1, "0123456789");
    if (text[len] == 'Z')
        len++;
    else if (strncmp(text + len, "+00:00", 6) == 0)
        len += 6;
    else
        return 0;
    (void)snprintf(date, sizeof(date), "%.*s", (int)len, text);
    return clock_parse_date(date, ret_usec) == 0 ? len : 0;
}

static void prose_write_date(int64_t at, int64_t now_usec, struct strbuf *out)
{
    char local[CLOCK_ISO_MAX];
    int64_t off = at - now_usec;

    strbuf_addf(out, "%s (%s", clock_format_local(at, local), off >= 0 ? "in " : "");
    cell_write_span(off >= 0 ? off : -off, out);
    strbuf_adds(out, off >= 0 ? ")" : " ago)");
}

void prose_localize(const char *text, int64_t now_usec, struct strbuf *out)
{
    for (; *text; text++) {
        int64_t at;
        size_t len = *text >= '0' && *text <= '9' ? prose_date_size(text, &at) : 0;

        if (!len) {
            strbuf_addc(out, *text);
            continue;
        }
        if (out->len && out->data[out->len - 1] == '(' && text[len] == ')') {
            /* one pair of brackets is enough */
            strbuf_truncate(out, out->len - 1);
            len++;
        }
        prose_write_date(at, now_usec, out);
        text += len - 1;
    }
}
