/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - run another program to its end and read what it writes */
#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define OUTPUT_MAX (64u << 10)

static _Noreturn void program_become(char *const *argv, int out_fd, int log_fd, int null_fd)
{
    sigset_t none;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(null_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0
        && dup2(log_fd, STDERR_FILENO) >= 0)
        (void)execv(argv[0], argv);
    _exit(127);
}

/* Until the other side closes. 0, -ETIMEDOUT or -errno. */
static int program_collect(int fd, int64_t deadline_usec, struct strbuf *out)
{
    struct pollfd wait_for = { .fd = fd, .events = POLLIN };
    char bytes[4096];

    for (;;) {
        int64_t left = deadline_usec - clock_monotonic_usec();
        ssize_t got;

        if (left <= 0 || poll(&wait_for, 1, (int)(left / USEC_PER_MSEC) + 1) == 0)
            return -ETIMEDOUT;
        got = read(fd, bytes, sizeof(bytes));
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            return 0;
        if (got > 0 && out->len + (size_t)got <= OUTPUT_MAX)
            strbuf_add(out, bytes, (size_t)got);
    }
}

/* The last line that is not empty. */
static const char *program_last_line(struct strbuf *text)
{
    const char *end;

    while (text->len && text->data[text->len - 1] == '\n')
        strbuf_truncate(text, text->len - 1);
    end = strrchr(text->data, '\n');
    return end ? end + 1 : text->data;
}

static int program_fail(char *const *argv, const char *log_path, off_t log_from, int code,
                        struct strbuf *text, struct aq_error *err)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    AQ_CLEANUP(aq_freep) char *logged = log_path ? log_read_last(log_path, log_from) : NULL;
    const char *said = log_path ? logged : text->len ? log_text_of(program_last_line(text)) : NULL;
    const char *why = code == ETIMEDOUT ? "it did not end in time"
                      : said            ? said
                                        : "it failed without a word";

    if (log_path)
        return aq_fail(err, code, "%s: %s; see '%s'", name, why, log_path);
    return aq_fail(err, code, "%s: %s", name, why);
}

static int program_wait_for_end(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

int program_run(char *const *argv, const char *log_path, int timeout_msec, struct strbuf *out,
                struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int log_fd = log_path
                                           ? open(log_path,
                                                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
                                           : -1;
    off_t log_from = log_fd >= 0 ? lseek(log_fd, 0, SEEK_END) : 0;
    AQ_CLEANUP(aq_closep) int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct strbuf *said = out ? out : &text;
    int64_t deadline = clock_monotonic_usec() + timeout_msec * USEC_PER_MSEC;
    int ends[2], r, status;
    pid_t pid;

    if (access(argv[0], X_OK) < 0)
        return aq_fail_errno(err, "start '%s'", argv[0]);
    if ((log_path && log_fd < 0) || null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "start '%s'", argv[0]);
    pid = fork();
    if (pid == 0)
        program_become(argv, ends[1], log_path ? log_fd : ends[1], null_fd);
    aq_closep(&ends[1]);
    r = pid < 0 ? -errno : program_collect(ends[0], deadline, said);
    aq_closep(&ends[0]);
    if (pid < 0)
        return aq_fail(err, -r, "start '%s': %s", argv[0], strerror(-r));
    if (r < 0)
        (void)kill(pid, SIGKILL);
    status = program_wait_for_end(pid);
    if (r == 0)
        r = status;
    return r < 0 ? program_fail(argv, log_path, log_from, -r, said, err) : 0;
}
