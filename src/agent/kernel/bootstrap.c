/* SPDX-License-Identifier: Apache-2.0 */
/* bootstrap.c - did the script that runs before a kernel's program fail? */
#include "agent/kernel/bootstrap.h"

#include <stdio.h>
#include <string.h>

#include "agent/kernel/last_lines.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

#define READ_MAX 4096
#define LINES_MAX 5
#define SHOWN_MAX 1000 /* bytes of these lines */

/* Where the line begins, which something in the background may have written behind; NULL. */
static char *bootstrap_find_line(struct strbuf *log, int exit_code)
{
    char line[sizeof(BOOTSTRAP_FAILED_LINE) + 12], *found = NULL;
    size_t len = (size_t)snprintf(line, sizeof(line), BOOTSTRAP_FAILED_LINE "%d", exit_code);

    for (char *at = log->data, *end = at + log->len;
         at && (at = memmem(at, (size_t)(end - at), line, len)); at += len)
        if (at[len] == '\n' || at[len] == '\r') /* a terminal's lines end in both */
            found = at;
    return found;
}

/* The last lines of the text, without what a terminal has beside letters. */
static void bootstrap_add_lines(const char *text, size_t len, struct strbuf *why)
{
    size_t from = len, lines = 0;

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    for (from = len; from > 0 && len - from < SHOWN_MAX; from--)
        if (text[from - 1] == '\n' && ++lines == LINES_MAX)
            break;
    from += utf8_rest(text + from, len - from);
    strbuf_adds(why, len > from ? "; its last lines:\n" : ", without output");
    for (; from < len; from++)
        if ((unsigned char)text[from] >= ' ' || text[from] == '\n' || text[from] == '\t')
            strbuf_addc(why, text[from]);
}

bool bootstrap_has_failed(const char *run_directory, int exit_code, struct strbuf *why)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf log = STRBUF_INIT;
    const char *line;

    last_lines_read_log(run_directory, READ_MAX, &log);
    line = bootstrap_find_line(&log, exit_code);
    if (!line)
        return false;
    strbuf_addf(why, "the bootstrap script failed with exit status %d", exit_code);
    bootstrap_add_lines(log.data, (size_t)(line - log.data), why);
    return true;
}

void bootstrap_describe_timeout(const char *run_directory, int64_t limit_usec, struct strbuf *why)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf log = STRBUF_INIT;

    last_lines_read_log(run_directory, READ_MAX, &log);
    strbuf_addf(why,
                "the bootstrap script took longer than %.3g s, the bootstrap-timeout of its agent",
                (double)limit_usec / USEC_PER_SEC);
    bootstrap_add_lines(log.data, log.len, why);
}
