/* SPDX-License-Identifier: Apache-2.0 */
/* exit_reason.c - why the program ended, or did not start, in the words of the exit record */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/utf8.h"
#include "monitor/monitor_internal.h"

/* crun begins with 2 MiB, runc with 4, and a program needs something, too. */
#define CONTAINER_MEMORY_MIN (INT64_C(8) << 20)

/* Up to the quote that ends it; a backslash stands before those that do not. */
static void exit_reason_unquote(char *text)
{
    char *out = text;

    for (; *text && *text != '"'; text++) {
        if (*text == '\\' && text[1])
            text++;
        *out++ = *text;
    }
    *out = '\0';
}

/* Of an OCI runtime, which the kernel ended for want of memory before it ran the program. */
static char *exit_reason_describe_small(const struct memory_use *memory)
{
    struct strbuf text = STRBUF_INIT;
    int64_t limit = AQ_MAX(memory->limit_bytes, INT64_C(0));

    strbuf_add_size(&text, (uint64_t)limit);
    strbuf_adds(&text, " of memory is too little to start a container: ask for at least ");
    strbuf_add_size(&text, (uint64_t)AQ_MAX(2 * limit, CONTAINER_MEMORY_MIN));
    return strbuf_steal(&text);
}

/* The last words of a runtime that could not make the container. */
static char *exit_reason_read_log(const struct runner_link *link)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, written = STRBUF_INIT;
    char *line, *message;

    runner_link_read_log(link, 1 << 16, &written);
    utf8_write_text(written.data, written.len, &text);
    while (text.len && text.data[text.len - 1] == '\n')
        strbuf_truncate(&text, text.len - 1);
    line = strrchr(text.data, '\n');
    line = line ? line + 1 : text.data;
    if ((message = strstr(line, "msg=\""))) { /* runc's form: time="..." level=error msg="..." */
        line = message + strlen("msg=\"");
        exit_reason_unquote(line);
    }
    return aq_format("the container could not be made%s%s", line[0] ? ": " : "", line);
}

int exit_reason_find_status(const struct monitor *m, const struct runner_report *report)
{
    return report && !report->code ? report->status : m->status;
}

/* What was killed: the program itself, or one that it waited for. */
const char *exit_reason_find(const struct monitor *m, int status, const struct memory_use *memory)
{
    if (m->reason)
        return m->reason;
    if (memory->was_short && status != 0)
        return MONITOR_OUT_OF_MEMORY;
    return WIFSIGNALED(status) ? MONITOR_SIGNALLED : MONITOR_EXITED;
}

char *exit_reason_describe_lack(const struct memory_use *memory)
{
    struct strbuf text = STRBUF_INIT;

    if (!memory->was_short)
        return NULL;
    strbuf_adds(&text, "A process was killed because the memory was used up");
    if (memory->limit_bytes > 0) {
        strbuf_adds(&text, "; the limit was ");
        strbuf_add_size(&text, (uint64_t)memory->limit_bytes);
    }
    strbuf_adds(&text, ".");
    return strbuf_steal(&text);
}

char *exit_reason_find_complaint(const struct monitor *m, const struct runner_report *report,
                                 const struct memory_use *memory)
{
    if (!m->program.sandbox.has_runner || m->is_running || m->reason)
        return NULL;
    if (m->runner.distrust == EPERM)
        return strdup("a program of the image has run in the place of aliquot-runner");
    if (m->runner.distrust)
        return aq_format("what runs as process 1 cannot be seen: %s", strerror(m->runner.distrust));
    if (report && report->code)
        return aq_format("%s: %s", report->text, strerror(report->code));
    if (report)
        return NULL;
    return memory->was_short ? exit_reason_describe_small(memory)
                             : exit_reason_read_log(&m->runner);
}
