/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a log by pattern. */
#include "cli/session/log_filter.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "cli/opt.h"

#define LINE_BYTES_MAX (1u << 20) /* a longer line is cut into several */

struct log_filter {
    regex_t pattern;
    bool has_timestamps;
    struct strbuf line, out;
};

int log_filter_new(const char *pattern, bool has_timestamps, struct log_filter **ret,
                   struct aq_error *err)
{
    struct log_filter *f = calloc(1, sizeof(*f));
    char why[120];
    int r;

    if (!f)
        return aq_fail_oom(err);
    r = regcomp(&f->pattern, pattern, REG_EXTENDED | REG_NOSUB);
    if (r != 0) {
        (void)regerror(r, &f->pattern, why, sizeof(why));
        free(f);
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--grep: '%.100s' is no regular expression: %s", pattern, why);
    }
    f->has_timestamps = has_timestamps;
    strbuf_init(&f->line);
    strbuf_init(&f->out);
    *ret = f;
    return 0;
}

void log_filter_free(struct log_filter *f)
{
    if (!f)
        return;
    regfree(&f->pattern);
    strbuf_done(&f->line);
    strbuf_done(&f->out);
    free(f);
}

static void log_filter_take_line(struct log_filter *f)
{
    const char *time_end = f->has_timestamps ? strchr(f->line.data, ' ') : NULL;
    const char *text = time_end ? time_end + 1 : f->line.data;

    if (regexec(&f->pattern, text, 0, NULL, 0) == 0) {
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
