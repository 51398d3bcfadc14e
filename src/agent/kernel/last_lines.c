/* SPDX-License-Identifier: Apache-2.0 */
/* last_lines.c - see last_lines.h */
#include "agent/kernel/last_lines.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "monitor/log_ring.h"

#define ESCAPE '\033'

void last_lines_read_log(const char *run_directory, size_t max, struct strbuf *out)
{
    AQ_CLEANUP(aq_closep) int directory = open(run_directory, O_DIRECTORY | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct log_ring ring = { .directory = directory };
    struct stat st;

    if (directory >= 0)
        fd = openat(directory, "log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    ring.fd = fd;
    ring.len = (uint64_t)st.st_size;
    log_ring_tail(&ring, max, out);
}

/* Bytes of the escape sequence at bytes[0] (ECMA-48): ESC, then "[" with parameters and a final byte,
 * or "]" with a text up to BEL or ESC "\", or intermediate bytes and a final one.
 */
static size_t last_lines_escape(const char *bytes, size_t len)
{
    size_t at = 1;

    if (at < len && bytes[at] == ']') {
        while (at < len && bytes[at] != '\a' && bytes[at] != ESCAPE)
            at++;
        return AQ_MIN(len, at + (at < len && bytes[at] == ESCAPE ? 2 : 1));
    }
    if (at < len && bytes[at] == '[')
        at++;
    while (at < len && bytes[at] >= ' ' && bytes[at] < '@')
        at++;
    return AQ_MIN(len, at + 1);
}

/* True if what is written behind this carriage return overwrites the line. */
static bool last_lines_is_return(const char *bytes, size_t len)
{
    size_t at = 1;

    while (at < len && bytes[at] == '\r')
        at++;
    return at < len && bytes[at] != '\n';
}

static void last_lines_add_clean(const char *bytes, size_t len, struct strbuf *out)
{
    size_t line = out->len; /* where the present one begins */

    for (size_t at = 0; at < len;) {
        uint32_t code = (unsigned char)bytes[at];
        bool is_shown;
        size_t n;

        if (bytes[at] == ESCAPE) {
            at += last_lines_escape(bytes + at, len - at);
            continue;
        }
        if (bytes[at] == '\r' && last_lines_is_return(bytes + at, len - at))
            strbuf_truncate(out, line);
        n = utf8_next(bytes, len, at, &code, &is_shown);
        if (is_shown || code == '\n' || code == '\t')
            strbuf_add(out, bytes + at, n);
        else if (n == 1 && code >= 128)
            strbuf_addc(out, '?'); /* it is not UTF-8 */
        at += n;
        if (code == '\n')
            line = out->len;
    }
}

void last_lines_write(const char *bytes, size_t len, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;
    size_t from, end, lines = 0;

    last_lines_add_clean(bytes, len, &clean);
    end = clean.len;
    while (end > 0 && strchr(" \t\n", clean.data[end - 1]))
        end--;
    for (from = end; from > 0 && end - from < LAST_LINES_BYTES_MAX; from--)
        if (clean.data[from - 1] == '\n' && ++lines == LAST_LINES_MAX)
            break;
    from += utf8_rest(clean.data + from, end - from);
    strbuf_add(out, clean.data + from, end - from);
}
