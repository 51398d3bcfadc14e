/* SPDX-License-Identifier: Apache-2.0 */
/* A script for "submit": its interpreter and the options in its first comments. */
#include "cli/submit/batch_script.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"
#include "cli/opt.h"

#define BLANKS " \t"

/* One word of at[0 .. end) without its quotation marks; where it ends, NULL = they are not closed.
 */
static const char *batch_take_word(const char *at, const char *end, struct strbuf *out)
{
    char quote = '\0';

    for (; at < end && (quote || !strchr(BLANKS, *at)); at++) {
        if (*at == '\\' && quote != '\'' && at + 1 < end)
            strbuf_addc(out, *++at);
        else if (quote ? *at == quote : *at == '\'' || *at == '"')
            quote = quote ? '\0' : *at;
        else
            strbuf_addc(out, *at);
    }
    return quote ? NULL : at;
}

static int batch_split(const char *at, const char *end, struct arena *arena,
                       struct batch_line *line, struct aq_error *err)
{
    char *words[BATCH_WORDS_MAX + 1];

    for (;;) {
        AQ_CLEANUP(strbuf_donep) struct strbuf word = STRBUF_INIT;

        while (at < end && strchr(BLANKS, *at))
            at++;
        if (at == end || *at == '#')
            break;
        if (line->argc == BATCH_WORDS_MAX)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "line %u: more than %d words; use several lines", line->number,
                                BATCH_WORDS_MAX);
        at = batch_take_word(at, end, &word);
        if (!at)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "line %u: a quotation mark is not closed", line->number);
        words[line->argc++] = arena_strndup(arena, word.data, word.len);
    }
    line->argv = arena_array(arena, (size_t)line->argc + 1, sizeof(*line->argv));
    memcpy(line->argv, words, (size_t)line->argc * sizeof(*words));
    return 0;
}

/* "#!/bin/bash -l" */
static int batch_read_interpreter(const char *text, const char *end, struct batch_script *ret,
                                  struct aq_error *err)
{
    const char *at = text + 2, *stop;

    while (at < end && strchr(BLANKS, *at))
        at++;
    for (stop = at; stop < end && !strchr(BLANKS, *stop);)
        stop++;
    if (end - text < 2 || memcmp(text, "#!", 2) != 0 || at >= stop)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "line 1: a script begins with its interpreter, such as #!/bin/bash");
    if (memchr(text, '\r', (size_t)(end - text)))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "line 1 has a carriage return (\\r), which ended lines on old Macs; "
                            "mac2unix changes that");
    if (!utf8_is_valid(text, (size_t)(end - text)))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "line 1: the interpreter is not UTF-8");
    ret->interpreter = arena_strndup(&ret->arena, at, (size_t)(stop - at));
    while (stop < end && strchr(BLANKS, *stop))
        stop++;
    while (end > stop && strchr(BLANKS, end[-1]))
        end--;
    if (stop < end)
        ret->argument = arena_strndup(&ret->arena, stop, (size_t)(end - stop));
    return 0;
}

/* Does the line begin with the word, alone? */
static bool batch_has_word(const char *at, const char *end, const char *word)
{
    size_t len = strlen(word);

    return (size_t)(end - at) >= len && memcmp(at, word, len) == 0
           && (at + len == end || strchr(BLANKS, at[len]));
}

/* Does the line begin with the command? */
static bool batch_has_command(const char *at, const char *end, const char *command)
{
    while (at < end && strchr(BLANKS, *at))
        at++;
    return batch_has_word(at, end, command);
}

/* A line that is no command. */
static bool batch_is_comment(const char *at, const char *end)
{
    while (at < end && strchr(BLANKS, *at))
        at++;
    return at == end || *at == '#';
}

/* A line of options: the word, and then blanks or an option; no ASCII behind it is a blank of a
 * web page, which the option then has.
 */
static bool batch_has_options(const char *at, const char *end, const char *word)
{
    size_t len = strlen(word);

    return batch_has_word(at, end, word)
           || ((size_t)(end - at) > len && memcmp(at, word, len) == 0
               && (at[len] == '-' || (unsigned char)at[len] >= 0x80));
}

/* What the script says in vain: options for others, commands that are not in the session. */
static void batch_look(const char *at, const char *end, unsigned number, struct batch_script *ret)
{
    static const char *const others[] = { "#PBS", "#BSUB" };
    static const char *const commands[] = { "srun", "sbatch", "salloc", "scontrol", "sbcast" };

    for (size_t i = 0; !ret->other_line && i < AQ_COUNT(others); i++)
        if (batch_has_word(at, end, others[i]))
            ret->other_line = number;
    for (size_t i = 0; !ret->command_line && i < AQ_COUNT(commands); i++)
        if (batch_has_command(at, end, commands[i])) {
            ret->command = commands[i];
            ret->command_line = number;
        }
}

static int batch_read_line(const char *at, const char *end, unsigned number, bool is_late,
                           struct batch_script *ret, struct aq_error *err)
{
    bool is_slurm = batch_has_options(at, end, "#SBATCH");
    struct batch_line *line = &ret->lines[ret->count];

    if (!is_slurm && !batch_has_options(at, end, "#ALIQUOT"))
        return 0;
    if (is_late) {
        ret->late_line = ret->late_line ? ret->late_line : number;
        return 0;
    }
    *line = (struct batch_line){ .number = number, .is_slurm = is_slurm };
    ret->count++;
    return batch_split(at + strlen(is_slurm ? "#SBATCH" : "#ALIQUOT"), end, &ret->arena, line, err);
}

static unsigned batch_line_of(const char *text, const char *at)
{
    unsigned line = 1;

    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

/* What no shell reads as it was meant, most of it by editors of Windows. */
static int batch_check_bytes(const char *text, size_t len, struct aq_error *err)
{
    const char *at;

    if (len > BATCH_SCRIPT_MAX)
        return aq_fail_kind(err, EFBIG, CLI_KIND_USAGE,
                            "a script has at most %u KiB; let it start a program of the image",
                            BATCH_SCRIPT_MAX >> 10);
    if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "line 1: the text is UTF-16; save it as UTF-8 (iconv -f utf-16)");
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "line 1: a byte order mark is before the #!; save it as UTF-8 without "
                            "one, or: sed -i '1s/^\\xef\\xbb\\xbf//' FILE");
    if ((at = memchr(text, '\0', len)))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "line %u: a NUL byte: this is no text; to run a program: aliquot run",
                            batch_line_of(text, at));
    if ((at = memmem(text, len, "\r\n", 2)))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "line %u ends as in DOS (\\r\\n); dos2unix changes that",
                            batch_line_of(text, at));
    return 0;
}

int batch_script_parse(const char *text, size_t len, struct batch_script *ret, struct aq_error *err)
{
    const char *end = text + len, *stop;
    bool is_late = false;
    unsigned number = 1;
    size_t lines = 1;
    int r = batch_check_bytes(text, len, err);

    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    if (r < 0)
        return r;
    ret->lines = arena_array(&ret->arena, lines, sizeof(*ret->lines));
    for (const char *at = text; r == 0 && (number == 1 || at < end); at = stop + 1, number++) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if (number == 1) {
            r = batch_read_interpreter(at, stop, ret, err);
            continue;
        }
        is_late = is_late || !batch_is_comment(at, stop);
        batch_look(at, stop, number, ret);
        r = batch_read_line(at, stop, number, is_late, ret, err);
    }
    return r;
}

void batch_script_done(struct batch_script *script)
{
    arena_done(&script->arena);
}
