/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a log by pattern. */
#include "cli/session/log_filter.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/opt.h"

/* A line is held until it is whole; one that never ends is cut into several. */
#define LINE_BYTES_MAX (64u << 20)

struct log_filter {
    regex_t pattern;
    bool has_timestamps, is_cut; /* cut: the line is the rest of a longer one */
    struct strbuf line, out;
};

int log_filter_new(const char *pattern, bool has_timestamps, struct log_filter **ret,
                   struct aq_error *err)
{
    struct log_filter *f = aq_alloc(sizeof(*f));
    char why[120];
    int r;

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

/* A NUL is a byte like others. */
bool log_filter_matches(const struct log_filter *f, const char *text, size_t len)
{
    regmatch_t span = { 0 };

    while (len && text[len - 1] == '\r')
        len--;
    span.rm_eo = (regoff_t)len;
    return regexec(&f->pattern, text, 1, &span, REG_STARTEND) == 0;
}

static void log_filter_take_line(struct log_filter *f)
{
    const char *text = f->line.data, *end = text + f->line.len;
    const char *time_end = f->has_timestamps && !f->is_cut ? memchr(text, ' ', f->line.len) : NULL;

    text = time_end ? time_end + 1 : text;
    if (log_filter_matches(f, text, (size_t)(end - text))) {
        strbuf_add(&f->out, f->line.data, f->line.len);
        strbuf_addc(&f->out, '\n');
    }
}

static int log_filter_write(struct log_filter *f)
{
    int r = fs_write_all(STDOUT_FILENO, f->out.data, f->out.len);

    strbuf_clear(&f->out);
    return r;
}

int log_filter_feed(struct log_filter *f, const char *bytes, size_t len)
{
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t size = end ? (size_t)(end - bytes) : len;

        strbuf_add(&f->line, bytes, size);
        if (end || f->line.len > LINE_BYTES_MAX) {
            log_filter_take_line(f);
            f->is_cut = !end;
            strbuf_clear(&f->line);
        }
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
