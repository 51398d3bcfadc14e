/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - one line per event on standard error */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

#define LOG_LINE_MAX 2048

static const char *log_component = "aliquot";
static enum log_level log_max = LOG_LEVEL_INFO;
static enum { LOG_PLAIN, LOG_TERMINAL, LOG_JOURNAL } log_form;

/* Is standard error the journal's stream, as JOURNAL_STREAM says (systemd.exec(5))? */
static bool log_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[48];
    struct stat st;

    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    (void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, own) == 0;
}

void log_init(const char *component, enum log_level max_level)
{
    log_component = component;
    log_max = max_level;
    log_form = isatty(STDERR_FILENO) == 1 ? LOG_TERMINAL
               : log_is_journal()         ? LOG_JOURNAL
                                          : LOG_PLAIN;
}

int log_parse_level(const char *text)
{
    static const struct {
        const char *name;
        enum log_level level;
    } levels[] = { { "error", LOG_LEVEL_ERR },
                   { "warning", LOG_LEVEL_WARNING },
                   { "info", LOG_LEVEL_INFO },
                   { "debug", LOG_LEVEL_DEBUG } };

    for (size_t i = 0; i < AQ_COUNT(levels); i++)
        if (strcmp(text, levels[i].name) == 0)
            return (int)levels[i].level;
    return -EINVAL;
}

static const char *const log_words[] = { [LOG_LEVEL_ERR] = "error: ",
                                         [LOG_LEVEL_WARNING] = "warning: ",
                                         [LOG_LEVEL_INFO] = "",
                                         [LOG_LEVEL_DEBUG] = "debug: " };

const char *log_text_of(const char *line)
{
    const char *text = strnlen(line, 21) > 20 && line[10] == 'T' && line[19] == ' '
                           ? strstr(line, ": ")
                           : NULL;

    if (!text)
        return line;
    text += 2;
    for (size_t i = 0; i < AQ_COUNT(log_words); i++)
        if (log_words[i] && log_words[i][0]
            && strncmp(text, log_words[i], strlen(log_words[i])) == 0)
            return text + strlen(log_words[i]);
    return text;
}

char *log_read_last(const char *path, int64_t from)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[LOG_LINE_MAX + 1], *line;
    off_t end = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    off_t start = AQ_MAX((off_t)from, end - LOG_LINE_MAX);
    ssize_t got = start < end ? pread(fd, text, (size_t)(end - start), start) : 0;

    while (got > 0 && text[got - 1] == '\n')
        got--;
    if (got <= 0)
        return NULL;
    text[got] = '\0';
    line = strrchr(text, '\n');
    return strdup(log_text_of(line ? line + 1 : text));
}

static size_t log_put_prefix(char *line, size_t size, enum log_level level)
{
    static const char *const colours[] = { [LOG_LEVEL_ERR] = "\033[31m",
                                           [LOG_LEVEL_WARNING] = "\033[33m",
                                           [LOG_LEVEL_INFO] = "",
                                           [LOG_LEVEL_DEBUG] = "\033[2m" };
    bool is_plain = log_form == LOG_PLAIN;
    char when[CLOCK_ISO_MAX];

    if (log_form == LOG_JOURNAL)
        return (size_t)snprintf(line, size, "<%d>%s: ", (int)level, log_component);
    clock_format_iso(clock_realtime_usec(), when);
    return (size_t)snprintf(line, size, "%s%.19s %s: %s", is_plain ? "" : colours[level], when,
                            log_component, is_plain ? log_words[level] : "");
}

void log_write(enum log_level level, const char *fmt, ...)
{
    char line[LOG_LINE_MAX];
    va_list args;
    size_t start, len;
    int saved = errno;

    if (level > log_max)
        return;
    start = log_put_prefix(line, sizeof(line), level);
    va_start(args, fmt);
    (void)vsnprintf(line + start, sizeof(line) - start - 8, fmt, args);
    va_end(args);
    utf8_drop_partial(line + start);
    utf8_make_printable(line + start);
    len = strlen(line);
    len += (size_t)snprintf(line + len, sizeof(line) - len, "%s\n",
                            log_form == LOG_TERMINAL ? "\033[0m" : "");
    if (write(STDERR_FILENO, line, len) < 0) {
        /* nowhere to complain to */
    }
    errno = saved;
}
