/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a log by pattern and by the times that they begin with. */
#include "cli/session/log_filter.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "cli/opt.h"

#define LINE_BYTES_MAX (1u << 20) /* a longer line is cut into several */

struct log_filter {
    bool has_pattern, has_since, timestamps;
    regex_t pattern;
    int64_t since_usec, time_usec; /* of the last line that had one */
    bool has_time;
    struct strbuf line, out;
};

static int log_filter_read_since(struct log_filter *f, const char *text, struct aq_error *err)
{
    int64_t span;

    if (clock_parse_duration(text, &span) == 0)
        f->since_usec = clock_realtime_usec() - span;
    else if (clock_parse_date(text, &f->since_usec) < 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--since takes a date such as 2026-11-23T02:00:00Z or a span of time "
                            "such as 10m, not '%.60s'",
                            text);
    f->has_since = true;
    return 0;
}

static int log_filter_read_pattern(struct log_filter *f, const char *text, struct aq_error *err)
{
    char why[120];
    int r = regcomp(&f->pattern, text, REG_EXTENDED | REG_NOSUB);

    if (r != 0) {
        (void)regerror(r, &f->pattern, why, sizeof(why));
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--grep: '%.100s' is no regular expression: %s", text, why);
    }
    f->has_pattern = true;
    return 0;
}

int log_filter_new(const struct log_filter_options *options, struct log_filter **ret,
                   struct aq_error *err)
{
    struct log_filter *f = calloc(1, sizeof(*f));
    int r = f ? 0 : aq_fail_oom(err);

    if (r == 0) {
        f->timestamps = options->timestamps;
        strbuf_init(&f->line);
        strbuf_init(&f->out);
    }
    if (r == 0 && options->pattern)
        r = log_filter_read_pattern(f, options->pattern, err);
    if (r == 0 && options->since)
        r = log_filter_read_since(f, options->since, err);
    if (r < 0)
        log_filter_free(f);
    else
        *ret = f;
    return r;
}

void log_filter_free(struct log_filter *f)
{
    if (!f)
        return;
    if (f->has_pattern)
        regfree(&f->pattern);
    strbuf_done(&f->line);
    strbuf_done(&f->out);
    free(f);
}

/* Does 'text' look like 'form', where 0 stands for any digit? */
static bool log_filter_has_form(const char *text, const char *form)
{
    for (; *form; form++, text++)
        if (*form == '0' ? !isdigit((unsigned char)*text) : *form != *text)
            return false;
    return true;
}

/* The date and time that a line begins with, perhaps in a bracket. */
static bool log_filter_parse_time(const char *line, int64_t *ret_usec)
{
    char text[CLOCK_ISO_MAX];
    size_t len = strlen("0000-00-00 00:00:00"), zone;

    line += strspn(line, " [(");
    if (!log_filter_has_form(line, "0000-00-00") || (line[10] != 'T' && line[10] != ' ')
        || !log_filter_has_form(line + 11, "00:00:00"))
        return false;
    if (line[len] == '.' || line[len] == ',')
        len += 1 + strspn(line + len + 1, "0123456789");
    zone = line[len] == 'Z' ? 1 : 0;
    if (line[len] == '+' || line[len] == '-')
        zone = log_filter_has_form(line + len + 1, "00:00")  ? 6
               : log_filter_has_form(line + len + 1, "0000") ? 5
                                                             : 0;
    if (len + zone >= sizeof(text))
        return false;
    memcpy(text, line, len + zone);
    text[len + zone] = '\0';
    if (text[19] == ',')
        text[19] = '.';
    return clock_parse_date(text, ret_usec) == 0;
}

static void log_filter_take_line(struct log_filter *f)
{
    char time[CLOCK_ISO_MAX] = "-";

    f->has_time |= log_filter_parse_time(f->line.data, &f->time_usec);
    if ((!f->has_since || (f->has_time && f->time_usec >= f->since_usec))
        && (!f->has_pattern || regexec(&f->pattern, f->line.data, 0, NULL, 0) == 0)) {
        if (f->timestamps)
            strbuf_addf(&f->out, "%s ", f->has_time ? clock_format_iso(f->time_usec, time) : time);
        strbuf_add(&f->out, f->line.data, f->line.len);
        strbuf_addc(&f->out, '\n');
    }
    strbuf_clear(&f->line);
}

static int log_filter_write(struct log_filter *f)
{
    int r = strbuf_ok(&f->out) && strbuf_ok(&f->line)
                ? fs_write_all(STDOUT_FILENO, f->out.data, f->out.len)
                : -ENOMEM;

    strbuf_clear(&f->out);
    return r;
}

int log_filter_feed(struct log_filter *f, const char *bytes, size_t len)
{
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t size = end ? (size_t)(end - bytes) : len;

        strbuf_add(&f->line, bytes, size);
        if (end || f->line.len > LINE_BYTES_MAX)
            log_filter_take_line(f);
        size += end != NULL;
        bytes += size;
        len -= size;
    }
    return log_filter_write(f);
}

int log_filter_end(struct log_filter *f)
{
    if (f->line.len)
        log_filter_take_line(f);
    return log_filter_write(f);
}

bool log_filter_has_times(const struct log_filter *f)
{
    return f->has_time;
}
