/* SPDX-License-Identifier: Apache-2.0 */
/* exit_reason.c - why the program ended, or did not start, in the words of the exit record */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "monitor/monitor_internal.h"

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

/* The last words of a runtime that could not make the container. */
static char *exit_reason_read_log(const struct runner_link *link)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char *line, *message;

    runner_link_read_log(link, 1 << 16, &text);
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

const char *exit_reason_find(const struct monitor *m, int status, const struct memory_use *memory)
{
    bool was_killed = WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                                          : WEXITSTATUS(status) == 128 + SIGKILL;

    if (m->reason)
        return m->reason;
    if (memory->was_short && was_killed)
        return MONITOR_OUT_OF_MEMORY;
    return WIFSIGNALED(status) ? MONITOR_SIGNALLED : MONITOR_EXITED;
}

char *exit_reason_describe_lack(const char *reason, const struct memory_use *memory)
{
    if (strcmp(reason, MONITOR_OUT_OF_MEMORY) != 0)
        return NULL;
    return aq_format("it was killed because its memory was used up; the most it had was %lld MiB",
                     (long long)(memory->peak_bytes >> 20));
}

char *exit_reason_find_complaint(const struct monitor *m, const struct runner_report *report)
{
    if (!m->program.sandbox.has_runner || m->is_running || m->reason)
        return NULL;
    if (report && report->code)
        return aq_format("%s: %s", report->text, strerror(report->code));
    return report ? NULL : exit_reason_read_log(&m->runner);
}
