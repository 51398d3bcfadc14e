/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the person at the terminal. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/cli.h"

int cli_confirm(bool yes, struct aq_error *err, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, question = STRBUF_INIT;
    char answer[16];
    va_list args;

    if (yes)
        return 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "this needs a yes, and there is no terminal to ask on; add --yes");
    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    utf8_write_printable(text.data, text.len, &question);
    (void)fprintf(stderr, "%s [y/N] ", question.data);
    if (!fgets(answer, sizeof(answer), stdin))
        return CLI_EXIT_FAILURE;
    return answer[0] == 'y' || answer[0] == 'Y' ? 0 : CLI_EXIT_FAILURE;
}

static volatile sig_atomic_t prompt_signal;

static void prompt_on_signal(int signum)
{
    prompt_signal = signum;
}

/* The echo is off before the prompt asks: what is typed at once is neither shown
 * nor lost. A signal ends the reading, so that the echo comes back before it acts.
 */
static char *prompt_read_secret(const char *prompt, char line[CLI_LINE_MAX])
{
    static const int signums[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction ours = { .sa_handler = prompt_on_signal }, before[AQ_COUNT(signums)];
    struct termios saved, silent;
    char *got;

    if (tcgetattr(STDIN_FILENO, &saved) < 0)
        return fgets(line, CLI_LINE_MAX, stdin);
    prompt_signal = 0;
    for (size_t i = 0; i < AQ_COUNT(signums); i++)
        (void)sigaction(signums[i], &ours, &before[i]);
    silent = saved;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    (void)fprintf(stderr, "%s: ", prompt);
    got = fgets(line, CLI_LINE_MAX, stdin);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved);
    (void)fputc('\n', stderr);
    for (size_t i = 0; i < AQ_COUNT(signums); i++)
        (void)sigaction(signums[i], &before[i], NULL);
    if (prompt_signal)
        (void)raise(prompt_signal);
    return got;
}

/* A password must not be cut, at NUL or at the end of the buffer. */
static int prompt_check_whole(const char *prompt, const char line[CLI_LINE_MAX],
                              struct aq_error *err)
{
    const char *end = memrchr(line, '\0', CLI_LINE_MAX); /* behind it is only what was put there */

    if (strlen(line) < (size_t)(end - line))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the %s contains NUL; remove it", prompt);
    if (end == line + CLI_LINE_MAX - 1 && !strchr(line, '\n'))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "the %s is longer than %d bytes; use a shorter one", prompt,
                            CLI_LINE_MAX - 2);
    return 0;
}

int cli_read_line(const char *prompt, bool is_secret, char line[CLI_LINE_MAX], struct aq_error *err)
{
    char *got;
    int r;

    memset(line, '\n', CLI_LINE_MAX);
    if (isatty(STDIN_FILENO) && !is_secret)
        (void)fprintf(stderr, "%s: ", prompt);
    got = is_secret ? prompt_read_secret(prompt, line) : fgets(line, CLI_LINE_MAX, stdin);
    if (!got || !strcspn(line, "\r\n"))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "no %s was given", prompt);
    r = prompt_check_whole(prompt, line, err);
    line[strcspn(line, "\r\n")] = '\0';
    return r;
}
