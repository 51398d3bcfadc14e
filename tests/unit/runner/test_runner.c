/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes: the runner in a child, as a subreaper instead of as PID 1. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "runner/runner.h"

struct scene {
    char folder[64];
    int listener, report, output; /* output: what the runner writes */
    pid_t pid;
};

static int scene_new(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char path[96];

    strcpy(s->folder, "/tmp/aliquot-runner-XXXXXX");
    if (!mkdtemp(s->folder))
        return -1;
    s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", s->folder);
    if (bind(s->listener, (struct sockaddr *)&address, sizeof(address)) < 0
        || listen(s->listener, 64) < 0)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/report", s->folder);
    s->report = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    s->output = -1;
    *state = s;
    return s->report < 0 ? -1 : 0;
}

static int scene_end(void **state)
{
    struct scene *s = *state;

    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    aq_closep(&s->listener);
    aq_closep(&s->report);
    aq_closep(&s->output);
    (void)fs_remove_tree(AT_FDCWD, s->folder, NULL);
    free(s);
    return 0;
}

static void run_checked(struct scene *s, bool tty, const char *check, char **argv)
{
    struct options o = { .socket = s->listener,
                         .report = s->report,
                         .bootstrap = -1,
                         .argv = argv,
                         .tty = tty,
                         .rows = 24,
                         .cols = 80,
                         .cwd = s->folder,
                         .check = check };
    int pair[2];

    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    s->pid = fork();
    if (s->pid == 0) {
        struct aq_error err = { 0 };
        int r;

        (void)dup2(pair[1], STDOUT_FILENO); /* it makes standard error the same */
        r = runner_run(&o, &err);
        if (r < 0)
            (void)dprintf(STDERR_FILENO, "%s\n", err.text);
        _exit(r < 0 ? 125 : r);
    }
    aq_closep(&pair[1]);
    s->output = pair[0];
}

static void run(struct scene *s, bool tty, char **argv)
{
    run_checked(s, tty, NULL, argv);
}

static void run_shell(struct scene *s, bool tty, const char *line)
{
    char *argv[] = { (char *)"sh", (char *)"-c", (char *)line, NULL };

    run(s, tty, argv);
}

static void run_nothing(struct scene *s)
{
    char *argv[] = { NULL };

    run(s, false, argv);
}

/* The runner's exit code, and all it wrote. */
static int await_end(struct scene *s, struct strbuf *output)
{
    char bytes[4096];
    ssize_t got;
    int status;

    while ((got = read(s->output, bytes, sizeof(bytes))) > 0)
        if (output)
            strbuf_add(output, bytes, (size_t)got);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    s->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Read the runner's own output until 'text' has come. */
static void await_output(struct scene *s, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT;
    char c;

    while (!strstr(seen.data, text)) {
        if (read(s->output, &c, 1) != 1)
            fail_msg("no '%s' in '%s'", text, seen.data);
        strbuf_addc(&seen, c);
    }
}

static struct runner_report read_report(struct scene *s)
{
    struct runner_report report;

    assert_int_equal(pread(s->report, &report, sizeof(report), 0), sizeof(report));
    assert_int_equal(report.magic, RUNNER_REPORT_MAGIC);
    return report;
}

static int connect_runner(const struct scene *s, struct runner_hello *hello)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", s->folder);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(recv(fd, hello, sizeof(*hello), 0), sizeof(*hello));
    assert_true(hello->type == RUNNER_HELLO && hello->protocol == RUNNER_PROTOCOL);
    return fd;
}

/* A connection on which "sh -c LINE" was asked for. */
static int start_exec(const struct scene *s, uint8_t flags, const char *const *argv)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf packet = STRBUF_INIT;
    struct runner_exec head = {
        .type = RUNNER_EXEC, .flags = flags, .rows = 33, .cols = 99, .envc = 1
    };
    struct runner_hello hello;
    int fd = connect_runner(s, &hello);

    while (argv[head.argc])
        head.argc++;
    strbuf_add(&packet, &head, sizeof(head));
    for (size_t i = 0; i < head.argc; i++)
        strbuf_add(&packet, argv[i], strlen(argv[i]) + 1);
    strbuf_add(&packet, "EXTRA=given\0", 13);
    assert_int_equal(send(fd, packet.data, packet.len, 0), packet.len);
    return fd;
}

static int start_shell(const struct scene *s, uint8_t flags, const char *line)
{
    const char *const argv[] = { "sh", "-c", line, NULL };

    return start_exec(s, flags, argv);
}

static void send_bytes(int fd, char type, const char *bytes, size_t len)
{
    char packet[RUNNER_PACKET_MAX];

    packet[0] = type;
    if (len)
        memcpy(packet + 1, bytes, len);
    assert_int_equal(send(fd, packet, len + 1, 0), len + 1);
}

/* Read to the end of a command or of the program; its waitpid() status, or
 * -errno of FAILED.
 */
static int await_rest(int fd, bool is_started, struct strbuf *output, struct strbuf *errors)
{
    static char packet[RUNNER_PACKET_MAX];
    struct runner_failed failed;
    struct runner_ended ended;

    for (;;) {
        ssize_t got = recv(fd, packet, sizeof(packet), 0);

        assert_true(got > 0);
        switch (packet[0]) {
        case RUNNER_STARTED:
            is_started = true;
            break;
        case RUNNER_OUTPUT:
            assert_true(is_started);
            strbuf_add(output, packet + 1, (size_t)got - 1);
            break;
        case RUNNER_ERRORS:
            strbuf_add(errors, packet + 1, (size_t)got - 1);
            break;
        case RUNNER_ENDED:
            memcpy(&ended, packet, sizeof(ended));
            assert_int_equal(recv(fd, packet, 1, 0), 0);
            aq_closep(&fd);
            return ended.status;
        case RUNNER_FAILED:
            assert_false(is_started);
            memcpy(&failed, packet, sizeof(failed));
            strbuf_adds(errors, failed.text);
            aq_closep(&fd);
            return -failed.code;
        default:
            fail_msg("packet '%c'", packet[0]);
        }
    }
}

/* Read on to the report. */
static void await_taken(int fd, struct strbuf *output, struct runner_taken *ret)
{
    char packet[RUNNER_PACKET_MAX];

    while (ret->type != RUNNER_TAKEN) {
        ssize_t got = recv(fd, packet, sizeof(packet), 0);

        assert_true(got > 0 && (packet[0] == RUNNER_OUTPUT || packet[0] == RUNNER_TAKEN));
        if (packet[0] == RUNNER_OUTPUT)
            strbuf_add(output, packet + 1, (size_t)got - 1);
        else
            memcpy(ret, packet, sizeof(*ret));
    }
}

static int await_exec(int fd, struct strbuf *output, struct strbuf *errors)
{
    return await_rest(fd, false, output, errors);
}

static void test_exit_codes(void **state)
{
    static const struct {
        const char *line;
        int code;
        const char *output;
    } rows[] = {
        { "exit 0", 0, "" },
        { "echo out; echo err >&2; exit 3", 3, "out\nerr\n" },
        { "kill -SEGV $$", 139, "" },
        { "kill -9 $$", 137, "" },
        { "cat < /proc/self/oom_score_adj", 0, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
        void *one = NULL;
        struct runner_report report;

        assert_int_equal(scene_new(&one), 0);
        run_shell(one, false, rows[i].line);
        assert_row(await_end(one, &output) == rows[i].code, "%s", rows[i].line);
        if (rows[i].output)
            assert_string_equal(output.data, rows[i].output);
        report = read_report(one);
        assert_int_equal(report.status,
                         rows[i].code > 128 ? rows[i].code - 128 : rows[i].code << 8);
        assert_true(report.code == 0 && report.started_usec > 0 && report.max_rss_bytes > 0
                    && report.ended_usec >= report.started_usec);
        (void)scene_end(&one);
    }
}

static void test_what_cannot_start(void **state)
{
    static const struct {
        const char *name;
        int code, exit_code;
    } rows[] = {
        { "/nowhere/program", ENOENT, 127 },
        { "no-such-program", ENOENT, 127 },
        { "/etc", EACCES, 126 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
        char *argv[] = { (char *)rows[i].name, NULL };
        struct runner_report report;
        void *one = NULL;

        assert_int_equal(scene_new(&one), 0);
        run(one, false, argv);
        assert_row(await_end(one, &output) == rows[i].exit_code, "%s", rows[i].name);
        assert_non_null(strstr(output.data, rows[i].name));
        report = read_report(one);
        assert_true(report.code == rows[i].code && report.started_usec == 0);
        assert_int_equal(WEXITSTATUS(report.status), rows[i].exit_code);
        assert_non_null(strstr(report.text, strerror(rows[i].code)));
        (void)scene_end(&one);
    }
}

static void test_orphans_are_reaped(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;

    /* Each "( : & )" leaves an orphan; afterwards the runner must have one child: the shell */
    run_shell(s, false,
              "i=0; while [ $i -lt 1000 ]; do ( : & ); i=$((i+1)); done; "
              "for n in $(seq 100); do "
              "  set -- $(cat /proc/$PPID/task/$PPID/children); [ $# = 1 ] && break; sleep 0.05; "
              "done; echo children: $#");
    assert_int_equal(await_end(s, &output), 0);
    assert_string_equal(output.data, "children: 1\n");
}

/* It runs as the program would, before it; if it fails there is no program. */
static void test_check(void **state)
{
    static const struct {
        const char *script;
        int exit_code;
        const char *text; /* NULL = the program runs */
    } rows[] = {
        { "#!/bin/sh\necho fine\n", 7, NULL },
        { "#!/bin/sh\necho one >&2\necho two >&2\necho\nexit 1\n", 126, "two" },
        { "#!/bin/sh\nkill -9 $$\n", 126, "a check that has to come first failed silently" },
        { "#!/no/such/loader\n", 127, "execute: No such file or directory" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
        char *argv[] = { (char *)"sh", (char *)"-c", (char *)"echo program; exit 7", NULL };
        struct scene *one = NULL;
        char path[96];

        assert_int_equal(scene_new((void **)&one), 0);
        (void)snprintf(path, sizeof(path), "%s/check", one->folder);
        assert_int_equal(
            fs_write_quick(AT_FDCWD, path, rows[i].script, strlen(rows[i].script), 0700, NULL), 0);
        run_checked(one, false, path, argv);
        assert_row(await_end(one, &output) == rows[i].exit_code, "%s", rows[i].script);
        if (rows[i].text) {
            assert_string_equal(read_report(one).text, rows[i].text);
            assert_int_equal(read_report(one).started_usec, 0);
            assert_null(strstr(output.data, "program\n"));
        } else {
            assert_string_equal(output.data, "program\n");
        }
        (void)scene_end((void **)&one);
    }
}

static void test_signals_are_forwarded(void **state)
{
    static const int signals[] = { SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(signals); i++) {
        void *one = NULL;
        struct scene *s;
        char line[120];

        assert_int_equal(scene_new(&one), 0);
        s = one;
        (void)snprintf(line, sizeof(line),
                       "sleep 1000 & trap 'echo got; kill -9 $!; exit 7' %d; echo ready; wait",
                       signals[i]);
        run_shell(s, false, line);
        await_output(s, "ready");
        assert_int_equal(kill(s->pid, signals[i]), 0);
        await_output(s, "got");
        assert_row(await_end(s, NULL) == 7, "signal %d", signals[i]);
        (void)scene_end(&one);
    }
}

/* What a command has read of its first input: its own word, and the report's. */
static void test_exec_reports_its_input(void **state)
{
    static const struct {
        const char *line, *said;
        unsigned bytes, is_all;
    } rows[] = {
        { "true", "", 0, 0 },
        { "exec 0<&-; sleep 0.1", "", 0, 0 },
        { "read x; echo $x", "one\n", 4, 0 },
        { "read x; read y; echo $y; read z", "two\n", 8, 1 },
        { "cat", "one\ntwo\n", 8, 1 },
    };
    struct scene *s = *state;

    run_nothing(s);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
        int fd = start_shell(s, RUNNER_EXEC_INPUT | RUNNER_EXEC_REPORTS, rows[i].line);
        struct runner_taken taken = { .type = 0 };
        struct runner_started started;

        assert_int_equal(recv(fd, &started, sizeof(started), 0), sizeof(started));
        assert_true(started.type == RUNNER_STARTED && started.reports);
        send_bytes(fd, RUNNER_INPUT, "one\ntwo\n", 8);
        await_taken(fd, &output, &taken);
        assert_row(taken.bytes == rows[i].bytes && taken.is_all == rows[i].is_all, "%zu: %u, %u", i,
                   (unsigned)taken.bytes, taken.is_all);
        if (taken.is_all)
            send_bytes(fd, RUNNER_END_INPUT, NULL, 0);
        (void)await_rest(fd, true, &output, &output);
        assert_string_equal(output.data, rows[i].said);
    }
}

/* The runner writes to a command that reads no more: the program hears nothing of it. */
static void test_exec_closes_its_input(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
    int fd;

    run_shell(s, false, "exec sleep 1000");
    fd = start_shell(s, RUNNER_EXEC_INPUT, "exec 0<&-; echo; sleep 1000");
    for (char packet[64] = ""; packet[0] != RUNNER_OUTPUT;)
        assert_true(recv(fd, packet, sizeof(packet), 0) > 0);
    send_bytes(fd, RUNNER_INPUT, "x", 1);
    assert_int_equal(await_exec(start_shell(s, 0, "exit 3"), &output, &output), 3 << 8);
    aq_closep(&fd);
    assert_int_equal(kill(s->pid, SIGTERM), 0);
    assert_int_equal(await_end(s, NULL), 128 + SIGTERM);
}

static void test_without_program(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
    struct runner_hello hello;
    int fd;

    run_nothing(s);
    fd = connect_runner(s, &hello);
    assert_true(hello.flags == RUNNER_HELLO_IDLE && hello.pid == 0 && !hello.tty);
    aq_closep(&fd);
    fd = start_shell(s, 0, "echo $EXTRA; pwd");
    assert_int_equal(await_exec(fd, &output, &output), 0);
    assert_true(strncmp(output.data, "given\n/tmp/aliquot-runner-", 26) == 0);
    assert_int_equal(kill(s->pid, SIGTERM), 0);
    assert_int_equal(await_end(s, NULL), 0);
}

static void test_exec_streams(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT, errors = STRBUF_INIT;
    const char *const missing[] = { "no-such-program", NULL };
    int fd;

    run_nothing(s);
    fd = start_shell(s, 0, "cat; echo out; echo err >&2; exit 9");
    assert_int_equal(await_exec(fd, &output, &errors), 9 << 8);
    assert_string_equal(output.data, "out\n");
    assert_string_equal(errors.data, "err\n");

    fd = start_shell(s, RUNNER_EXEC_INPUT, "tr a-z A-Z");
    send_bytes(fd, RUNNER_INPUT, "hello ", 6);
    send_bytes(fd, RUNNER_INPUT, "there\n", 6);
    send_bytes(fd, RUNNER_END_INPUT, NULL, 0);
    strbuf_clear(&output);
    assert_int_equal(await_exec(fd, &output, &errors), 0);
    assert_string_equal(output.data, "HELLO THERE\n");

    strbuf_clear(&errors);
    fd = start_exec(s, 0, missing);
    assert_int_equal(await_exec(fd, &output, &errors), -ENOENT);
    assert_string_equal(errors.data, "execute: No such file or directory");

    fd = start_shell(s, 0, "kill -9 $$");
    assert_int_equal(await_exec(fd, &output, &errors), SIGKILL);
}

/* Much more than any buffer holds goes in and comes out, though neither side
 * takes turns.
 */
static void test_exec_loses_nothing(void **state)
{
    static char piece[32768];
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT, errors = STRBUF_INIT;
    const int pieces = 256; /* 8 MiB */
    pid_t writer;
    int fd, status;

    run_nothing(s);
    for (size_t i = 0; i < sizeof(piece); i++)
        piece[i] = (char)(i % 251);
    fd = start_shell(s, RUNNER_EXEC_INPUT, "sleep 0.2; exec cat");
    writer = fork();
    if (writer == 0) {
        for (int i = 0; i < pieces; i++)
            send_bytes(fd, RUNNER_INPUT, piece, sizeof(piece));
        send_bytes(fd, RUNNER_END_INPUT, NULL, 0);
        _exit(0);
    }
    (void)usleep(300000); /* let it fill up */
    assert_int_equal(await_exec(fd, &output, &errors), 0);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    assert_int_equal(output.len, (size_t)pieces * sizeof(piece));
    for (int i = 0; i < pieces; i++)
        assert_memory_equal(output.data + (size_t)i * sizeof(piece), piece, sizeof(piece));
}

static void test_exec_terminal(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
    const struct runner_resize size = { .type = RUNNER_RESIZE, .rows = 11, .cols = 44 };
    int fd;

    run_nothing(s);
    fd = start_shell(s, RUNNER_EXEC_TTY,
                     "tty; stty size; sleep 1000 & trap 'stty size; kill -9 $!; exit 5' WINCH; "
                     "echo ready; wait");
    while (!strstr(output.data, "ready")) {
        char packet[RUNNER_PACKET_MAX];
        ssize_t got = recv(fd, packet, sizeof(packet), 0);

        assert_true(got > 0);
        if (packet[0] == RUNNER_OUTPUT)
            strbuf_add(&output, packet + 1, (size_t)got - 1);
    }
    assert_int_equal(send(fd, &size, sizeof(size), 0), sizeof(size));
    assert_int_equal(await_rest(fd, true, &output, &output), 5 << 8);
    assert_non_null(strstr(output.data, "/dev/pts/"));
    assert_non_null(strstr(output.data, "33 99"));
    assert_non_null(strstr(output.data, "11 44"));
}

static void test_exec_ends_with_its_connection(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
    char path[96];
    int fd;

    run_nothing(s);
    (void)snprintf(path, sizeof(path), "%s/hung-up", s->folder);
    fd = start_shell(s, 0, "sleep 1000 & trap 'touch hung-up; kill -9 $!; exit' HUP; echo; wait");
    for (char packet[64] = ""; packet[0] != RUNNER_OUTPUT;)
        assert_true(recv(fd, packet, sizeof(packet), 0) > 0);
    aq_closep(&fd);
    for (int i = 0; i < 20000 && access(path, F_OK) < 0; i++)
        (void)usleep(1000);
    assert_int_equal(access(path, F_OK), 0);
}

static void test_exec_signal(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
    const struct runner_signal sig = { .type = RUNNER_SIGNAL, .signal = SIGUSR1 };
    int fd;

    run_nothing(s);
    fd = start_shell(s, 0, "sleep 1000");
    assert_int_equal(send(fd, &sig, sizeof(sig), 0), sizeof(sig));
    assert_int_equal(await_exec(fd, &output, &output), SIGUSR1);
}

/* A background process that keeps the pipes does not keep the command. */
static void test_exec_leaves_background(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
    int fd;

    run_nothing(s);
    fd = start_shell(s, 0, "sleep 2 & echo said");
    assert_int_equal(await_exec(fd, &output, &output), 0);
    assert_string_equal(output.data, "said\n");
}

static void test_terminal_of_the_program(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT, output = STRBUF_INIT;
    const struct runner_resize size = { .type = RUNNER_RESIZE, .rows = 10, .cols = 50 };
    struct runner_hello hello;
    int fd;

    run_shell(s, true,
              "stty -echo; echo started; read line; echo read: $line; stty size; "
              "read line; exit 4");
    await_output(s, "started");
    fd = connect_runner(s, &hello);
    assert_true(hello.tty && hello.pid > 1 && hello.flags == 0);
    send_bytes(fd, RUNNER_ATTACH, NULL, 0);
    assert_int_equal(send(fd, &size, sizeof(size), 0), sizeof(size));
    send_bytes(fd, RUNNER_INPUT, "words\nmore\n", 11);
    assert_int_equal(await_rest(fd, true, &seen, &seen), 4 << 8);
    assert_non_null(strstr(seen.data, "started\r\n")); /* from before */
    assert_non_null(strstr(seen.data, "read: words\r\n"));
    assert_non_null(strstr(seen.data, "10 50\r\n"));
    assert_int_equal(await_end(s, &output), 4);
    assert_non_null(strstr(output.data, "read: words\r\n")); /* the log has it too */
}

/* Who does not read holds nothing up, and then sees the end, from which there may be a prompt. */
static void test_slow_reader(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT;
    char packet[1 + RUNNER_OUTPUT_MAX];
    struct runner_hello hello;
    bool was_skipped = false;
    int fd;

    run_shell(s, true,
              "echo started; read go; head -c 3000000 /dev/zero | tr '\\000' x; "
              "printf the-end; read go; exit 4");
    await_output(s, "started");
    fd = connect_runner(s, &hello);
    send_bytes(fd, RUNNER_ATTACH, NULL, 0);
    send_bytes(fd, RUNNER_INPUT, "\n", 1);
    while (seen.len < 7 || strcmp(seen.data + seen.len - 7, "the-end") != 0) {
        ssize_t got = read(s->output, packet, sizeof(packet));

        assert_true(got > 0);
        strbuf_add(&seen, packet, (size_t)got);
    }
    strbuf_clear(&seen);
    while (!was_skipped) {
        assert_true(recv(fd, packet, sizeof(packet), 0) > 0);
        was_skipped = packet[0] == RUNNER_SKIPPED;
    }
    while (!strstr(seen.data, "the-end")) {
        ssize_t got = recv(fd, packet, sizeof(packet), 0);

        assert_true(got > 1 && packet[0] == RUNNER_OUTPUT);
        strbuf_add(&seen, packet + 1, (size_t)got - 1);
    }
    assert_true(seen.len <= RUNNER_REPLAY_MAX);
    send_bytes(fd, RUNNER_INPUT, "\n", 1);
    assert_int_equal(await_rest(fd, true, &seen, &seen), 4 << 8);
    assert_int_equal(await_end(s, NULL), 4);
}

static void test_attach_without_terminal(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;
    struct runner_hello hello;
    int fd;

    run_shell(s, false, "exec sleep 1000");
    fd = connect_runner(s, &hello);
    send_bytes(fd, RUNNER_ATTACH, NULL, 0);
    assert_int_equal(await_exec(fd, &output, &output), -ENOTTY);
    assert_int_equal(kill(s->pid, SIGTERM), 0); /* the shell goes with it */
    assert_int_equal(await_end(s, &output), 128 + SIGTERM);
}

static void test_bad_packets(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        { "E", 1 },                          /* cut off */
        { "E\0\0\0\0\0\1\0\0\0", 10 },       /* an argument that is not there */
        { "E\0\0\0\0\0\0\0\1\0x\0\0", 13 },  /* a variable without a value */
        { "E\0\0\0\0\0\0\0\0\0x\0", 12 },    /* a relative directory */
        { "E\0\0\0\0\0\0\0\0\0/\0/\0", 14 }, /* more than announced */
        { "E\0\0\0\0\0\377\377\0\0", 10 },   /* too many */
    };
    struct scene *s = *state;
    struct runner_hello hello;
    int fd;

    run_nothing(s);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        fd = connect_runner(s, &hello);
        assert_int_equal(send(fd, rows[i].bytes, rows[i].len, 0), rows[i].len);
        assert_row(await_exec(fd, &text, &text) == -EINVAL, "packet %zu", i);
    }
    fd = connect_runner(s, &hello);
    send_bytes(fd, '?', NULL, 0); /* of a newer agent: ignored */
    send_bytes(fd, RUNNER_RESIZE, NULL, 0);
    send_bytes(fd, RUNNER_INPUT, "x", 1);
    assert_int_equal(kill(s->pid, 0), 0);
    aq_closep(&fd);
}

static void test_not_dumpable(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf output = STRBUF_INIT;

    /* The runner's descriptors are root's own; those of what it runs are not closed off. */
    run_shell(s, false,
              "stat -c %u /proc/$PPID/fd; ls /proc/self/fd | wc -l; "
              "setpriv --reuid 65534 --clear-groups ls /proc/$PPID/fd 2>&1");
    (void)await_end(s, &output);
    assert_true(strncmp(output.data, "0\n4\n", 4) == 0); /* 0 to 2 and that of ls */
    assert_non_null(strstr(output.data, "Permission denied"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, scene_new, scene_end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_what_cannot_start),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_signals_are_forwarded),
        TEST(test_exec_closes_its_input),
        TEST(test_exec_reports_its_input),
        TEST(test_orphans_are_reaped),
        TEST(test_without_program),
        TEST(test_exec_streams),
        TEST(test_exec_loses_nothing),
        TEST(test_exec_terminal),
        TEST(test_exec_ends_with_its_connection),
        TEST(test_exec_signal),
        TEST(test_exec_leaves_background),
        TEST(test_terminal_of_the_program),
        TEST(test_slow_reader),
        TEST(test_attach_without_terminal),
        TEST(test_bad_packets),
        TEST(test_not_dumpable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
