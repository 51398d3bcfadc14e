/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "base/uuid.h"
#include "monitor/clients.h"
#include "monitor/monitor.h"
#include "monitor/protocol.h"

struct folder {
    char path[64];
    struct strbuf program;
    char marker[80];
};

static void add(struct folder *f, const char *text)
{
    strbuf_add(&f->program, text, strlen(text) + 1);
}

/* A directory whose program is "/bin/sh -c COMMAND". */
static int folder_new(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    char id[UUID_TEXT_MAX];
    struct uuid uuid = uuid_random();

    strbuf_init(&f->program);
    strcpy(f->path, "/tmp/aliquot-monitor-XXXXXX");
    if (!mkdtemp(f->path))
        return -1;
    (void)snprintf(f->marker, sizeof(f->marker), "ALIQUOT_KERNEL_ID=%s", uuid_format(&uuid, id));
    add(f, "env=PATH=/usr/bin:/bin");
    strbuf_adds(&f->program, "env=");
    add(f, f->marker);
    strbuf_adds(&f->program, "cwd=");
    add(f, f->path);
    *state = f;
    return 0;
}

static int folder_end(void **state)
{
    struct folder *f = *state;

    strbuf_done(&f->program);
    (void)fs_remove_tree(AT_FDCWD, f->path, NULL);
    free(f);
    return 0;
}

static void put_program(struct folder *f)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/program", f->path);
    assert_int_equal(fs_write_atomic(AT_FDCWD, path, f->program.data, f->program.len, 0600, NULL),
                     0);
}

static void put_shell(struct folder *f, const char *command)
{
    add(f, "arg=/bin/sh");
    add(f, "arg=-c");
    strbuf_adds(&f->program, "arg=");
    add(f, command);
    put_program(f);
}

static pid_t start_monitor_for(const struct folder *f, int client)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct aq_error err = { 0 };
        int r = monitor_run(f->path, client, -1, &err);

        if (r < 0)
            (void)fprintf(stderr, "%s\n", err.text);
        _exit(r < 0 ? 1 : r);
    }
    return pid;
}

static pid_t start_monitor(const struct folder *f)
{
    return start_monitor_for(f, -1);
}

static int wait_monitor(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *read_text(const struct folder *f, const char *name)
{
    struct strbuf text = STRBUF_INIT;
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
    (void)fs_read(AT_FDCWD, path, 1 << 24, &text, NULL);
    return strbuf_steal(&text);
}

static bool exists(const struct folder *f, const char *name)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
    return access(path, F_OK) == 0;
}

static void wait_for(const struct folder *f, const char *name)
{
    for (int i = 0; i < 20000 && !exists(f, name); i++)
        (void)usleep(1000);
    assert_true(exists(f, name));
}

/* The exit record's reason and code; -1 = null. */
static int read_exit(const struct folder *f, char reason[40])
{
    AQ_CLEANUP(aq_freep) char *text = read_text(f, "exit.json");
    json_t *record = json_loads(text, 0, NULL);
    json_t *code = json_object_get(record, "exit_code");
    int value = json_is_integer(code) ? (int)json_integer_value(code) : -1;

    assert_non_null(record);
    (void)snprintf(reason, 40, "%s", json_string_value(json_object_get(record, "reason")));
    json_decref(record);
    return value;
}

static int connect_monitor(const struct folder *f)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct monitor_hello hello;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/monitor.sock", f->path);
    for (int i = 0; i < 20000; i++) {
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
            assert_int_equal(recv(fd, &hello, sizeof(hello), 0), sizeof(hello));
            assert_int_equal(hello.type, MONITOR_HELLO);
            assert_true(hello.pid > 1 && hello.started_usec > 0);
            return fd;
        }
        (void)usleep(1000);
    }
    fail_msg("no monitor.sock in %s", f->path);
    return -1;
}

static void send_terminate(int fd, int64_t grace_usec)
{
    const struct monitor_terminate end = { .type = MONITOR_TERMINATE, .grace_usec = grace_usec };

    assert_int_equal(send(fd, &end, sizeof(end), 0), sizeof(end));
}

static void test_exit_codes(void **state)
{
    static const struct {
        const char *command;
        int code;
        const char *reason, *log;
    } rows[] = {
        { "exit 0", 0, "exited", "" },
        { "echo out; echo err >&2; exit 3", 3, "exited", "out\nerr\n" },
        { "kill -SEGV $$", 139, "signalled", "" },
        { "kill -9 $$", 137, "signalled", "" },
        { "printf no-newline", 0, "exited", "no-newline" },
        { "cat; echo $ALIQUOT_KERNEL_ID | cut -c1-3; pwd | cut -c1-13", 0, "exited", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        void *one = NULL;
        char reason[40];

        assert_int_equal(folder_new(&one), 0);
        put_shell(one, rows[i].command);
        assert_int_equal(wait_monitor(start_monitor(one)), 0);
        assert_row(read_exit(one, reason) == rows[i].code, "%s", rows[i].command);
        assert_string_equal(reason, rows[i].reason);
        if (rows[i].log) {
            AQ_CLEANUP(aq_freep) char *log = read_text(one, "log");

            assert_string_equal(log, rows[i].log);
        }
        assert_false(exists(one, "monitor.sock"));
        (void)folder_end(&one);
    }
}

static void test_what_cannot_start(void **state)
{
    struct folder *f = *state;
    AQ_CLEANUP(aq_freep) char *record = NULL;
    char reason[40];

    add(f, "arg=/nowhere/program");
    put_program(f);
    assert_int_equal(wait_monitor(start_monitor(f)), 0);
    assert_int_equal(read_exit(f, reason), 127);
    assert_string_equal(reason, MONITOR_NOT_STARTED);
    record = read_text(f, "exit.json");
    assert_non_null(strstr(record, "No such file or directory"));
}

static void test_bad_programs(void **state)
{
    static const char *const rows[] = { "arg=relative", "colour=red",       "uid=-1",
                                        "uid=x",        "timeout_usec=9e9", "rlimit_shoe=1",
                                        "rlimit_as=",   "no equals",        "uid=4294967295" };
    char reason[40];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        void *one = NULL;

        assert_int_equal(folder_new(&one), 0);
        add(one, rows[i]);
        put_shell(one, "touch ran");
        assert_int_equal(wait_monitor(start_monitor(one)), 0);
        assert_row(read_exit(one, reason) == 126, "%s", rows[i]);
        assert_string_equal(reason, MONITOR_NOT_STARTED);
        assert_false(exists(one, "ran"));
        (void)folder_end(&one);
    }
}

static void test_runs_at_most_once(void **state)
{
    struct folder *f = *state;
    AQ_CLEANUP(aq_freep) char *count = NULL;
    pid_t monitors[8];
    int winners = 0;
    char reason[40];

    put_shell(f, "echo x >> count; sleep 0.3");
    for (size_t i = 0; i < AQ_COUNT(monitors); i++)
        monitors[i] = start_monitor(f);
    for (size_t i = 0; i < AQ_COUNT(monitors); i++)
        winners += wait_monitor(monitors[i]) == 0;
    assert_true(winners >= 1);
    assert_int_equal(wait_monitor(start_monitor(f)), 0); /* exit.json is there: nothing to do */
    count = read_text(f, "count");
    assert_string_equal(count, "x\n");
    assert_int_equal(read_exit(f, reason), 0);
}

/* A killed monitor takes the program along, and what has left the program's
 * group is ended by the next monitor.
 */
static void test_killed_monitor(void **state)
{
    struct folder *f = *state;
    pid_t monitor;
    char reason[40], command[200];

    (void)snprintf(command, sizeof(command),
                   "setsid sh -c 'echo $$ > orphan; touch ready; exec sleep 1000' & sleep 1000");
    put_shell(f, command);
    monitor = start_monitor(f);
    wait_for(f, "ready");
    (void)kill(monitor, SIGKILL);
    assert_int_equal(wait_monitor(monitor), 128 + SIGKILL);
    assert_int_equal(wait_monitor(start_monitor(f)), 0);
    assert_int_equal(read_exit(f, reason), -1);
    assert_string_equal(reason, MONITOR_LOST);
    {
        AQ_CLEANUP(aq_freep) char *orphan = read_text(f, "orphan");
        pid_t pid = atoi(orphan);

        assert_true(pid > 1);
        while (waitpid(-1, NULL, 0) > 0) /* it became ours */
            ;
        assert_true(kill(pid, 0) < 0 && errno == ESRCH);
    }
}

static void test_descendants_end(void **state)
{
    struct folder *f = *state;
    AQ_CLEANUP(aq_freep) char *pids = NULL;
    char reason[40];

    put_shell(
        f, "for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 1000' & done;"
           "while [ $(wc -l < pids) -lt 3 ]; do sleep 0.01; done; exit 5");
    assert_int_equal(wait_monitor(start_monitor(f)), 0);
    assert_int_equal(read_exit(f, reason), 5);
    pids = read_text(f, "pids");
    for (char *at = pids, *end; *at; at = end + 1) {
        pid_t pid = (pid_t)strtol(at, &end, 10);

        assert_true(pid > 1);
        assert_true(kill(pid, 0) < 0 && errno == ESRCH);
    }
}

static void test_terminate(void **state)
{
    struct folder *f = *state;
    pid_t monitor;
    char reason[40], byte;
    int fd;

    put_shell(f, "trap '' TERM; touch ready; while :; do sleep 1; done");
    monitor = start_monitor(f);
    wait_for(f, "ready");
    fd = connect_monitor(f);
    send_terminate(fd, 50000);
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, MONITOR_GONE);
    assert_true(exists(f, "exit.json"));
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 137);
    assert_string_equal(reason, MONITOR_TERMINATED);
    aq_closep(&fd);
}

/* The program minds SIGTERM at once; what it started has its grace all the same. */
static void test_grace_of_descendants(void **state)
{
    struct folder *f = *state;
    pid_t monitor;
    char reason[40];
    int fd;

    put_shell(f, "sh -c 'trap \"sleep 0.2; touch saved; exit\" TERM; touch ready;"
                 " while :; do sleep 0.01; done' & wait");
    monitor = start_monitor(f);
    wait_for(f, "ready");
    fd = connect_monitor(f);
    send_terminate(fd, INT64_C(60000000));
    assert_int_equal(wait_monitor(monitor), 0);
    assert_true(exists(f, "saved"));
    assert_int_equal(read_exit(f, reason), 143);
    assert_string_equal(reason, MONITOR_TERMINATED);
    aq_closep(&fd);
}

/* But no longer than that. */
static void test_grace_ends(void **state)
{
    struct folder *f = *state;
    pid_t monitor;
    char reason[40];
    int fd;

    put_shell(f, "sh -c 'trap \"\" TERM; touch ready; while :; do sleep 0.01; done' & wait");
    monitor = start_monitor(f);
    wait_for(f, "ready");
    fd = connect_monitor(f);
    send_terminate(fd, 100000);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 143);
    aq_closep(&fd);
}

static void test_timeout(void **state)
{
    struct folder *f = *state;
    char reason[40];

    add(f, "timeout_usec=100000");
    add(f, "grace_usec=50000");
    put_shell(f, "trap 'exit 9' TERM; while :; do sleep 0.01; done");
    assert_int_equal(wait_monitor(start_monitor(f)), 0);
    assert_int_equal(read_exit(f, reason), 9);
    assert_string_equal(reason, MONITOR_TIMEOUT);
}

/* From now on; both in ms. */
static void send_lease(int fd, int64_t left, int64_t grace)
{
    const struct monitor_lease lease = { .type = MONITOR_LEASE,
                                         .until_usec = clock_boottime_usec() + left * USEC_PER_MSEC,
                                         .grace_usec = grace * USEC_PER_MSEC };

    assert_int_equal(send(fd, &lease, sizeof(lease), 0), sizeof(lease));
}

/* The agent is killed after the first lease, or never renews it: the monitor ends the program. */
static void test_a_lease_ends_the_program(void **state)
{
    static const struct {
        const char *command;
        int64_t left, grace, least, most; /* ms */
        int code;
    } rows[] = {
        { "sleep 1000", 300, 10000, 300, 5000, 143 },
        { "trap '' TERM; while :; do sleep 0.01; done", 300, 400, 700, 5000, 137 },
        { "sleep 1000", -500, 10000, 0, 5000, 143 },   /* a machine that was suspended */
        { "sleep 1000", -20000, 10000, 0, 5000, 137 }, /* for longer than the grace */
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        void *folder = NULL;
        int64_t begin = clock_boottime_usec(), took;
        char reason[40];
        int pair[2];
        pid_t monitor;

        assert_int_equal(folder_new(&folder), 0);
        put_shell(folder, rows[i].command);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        send_lease(pair[0], rows[i].left, rows[i].grace);
        monitor = start_monitor_for(folder, pair[1]);
        aq_closep(&pair[0]);
        aq_closep(&pair[1]);
        assert_int_equal(wait_monitor(monitor), 0);
        took = (clock_boottime_usec() - begin) / USEC_PER_MSEC;
        assert_int_equal(read_exit(folder, reason), rows[i].code);
        assert_string_equal(reason, MONITOR_LEASE_OVER);
        assert_true(took >= rows[i].least && took < rows[i].most);
        assert_int_equal(folder_end(&folder), 0);
    }
}

/* A longer grace of another end does not outlast the lease's. */
static void test_a_lease_limits_other_graces(void **state)
{
    struct folder *f = *state;
    int64_t begin = clock_boottime_usec();
    char reason[40];
    pid_t monitor;
    int fd;

    put_shell(f, "trap '' TERM; touch ready; while :; do sleep 0.01; done");
    monitor = start_monitor(f);
    wait_for(f, "ready");
    fd = connect_monitor(f);
    send_lease(fd, 300, 200);
    send_terminate(fd, 60 * USEC_PER_SEC);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_true(clock_boottime_usec() - begin < 30 * USEC_PER_SEC);
    assert_int_equal(read_exit(f, reason), 137);
    assert_string_equal(reason, MONITOR_TERMINATED);
    aq_closep(&fd);
}

static void test_a_lease_is_renewed_or_dropped(void **state)
{
    const struct monitor_lease none = { .type = MONITOR_LEASE };
    struct folder *f = *state;
    char reason[40];
    pid_t monitor;
    int fd;

    put_shell(f, "touch ready; sleep 1.5");
    monitor = start_monitor(f);
    wait_for(f, "ready");
    fd = connect_monitor(f);
    for (int i = 0; i < 5; i++) {
        send_lease(fd, 500, 0);
        (void)usleep(100 * 1000);
    }
    assert_int_equal(send(fd, &none, sizeof(none), 0), sizeof(none));
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 0);
    assert_string_equal(reason, MONITOR_EXITED);
    aq_closep(&fd);
}

/* A signal before the end of the run time, one after it, then SIGTERM. */
static void test_signals_around_the_timeout(void **state)
{
    struct folder *f = *state;
    char reason[40];

    add(f, "timeout_usec=400000");
    add(f, "warn_signal=12");
    add(f, "warn_usec=300000");
    add(f, "notice_signal=10");
    add(f, "notice_usec=200000");
    put_shell(f, "trap 'touch warned' USR2; trap 'test -e warned && touch noticed' USR1;"
                 " trap 'test -e noticed && exit 7' TERM; while :; do sleep 0.01; done");
    assert_int_equal(wait_monitor(start_monitor(f)), 0);
    assert_int_equal(read_exit(f, reason), 7);
    assert_string_equal(reason, MONITOR_TIMEOUT);
}

/* Asked again, as by an agent that has restarted, it has no longer; SIGTERM at once is sooner. */
static void test_notice_does_not_become_longer(void **state)
{
    struct folder *f = *state;
    struct monitor_terminate end = { .type = MONITOR_TERMINATE,
                                     .grace_usec = 60000000,
                                     .notice_usec = 300000 };
    int64_t begin = clock_monotonic_usec();
    char reason[40];
    pid_t monitor;
    int fd;

    add(f, "notice_signal=10");
    put_shell(f, "trap 'echo x >> noticed' USR1; trap 'exit 7' TERM; touch ready;"
                 " while :; do sleep 0.01; done");
    monitor = start_monitor(f);
    wait_for(f, "ready");
    fd = connect_monitor(f);
    assert_int_equal(send(fd, &end, sizeof(end), 0), sizeof(end));
    wait_for(f, "noticed");
    end.notice_usec = 60000000;
    for (int i = 0; i < 3; i++)
        assert_int_equal(send(fd, &end, sizeof(end), 0), sizeof(end));
    assert_int_equal(wait_monitor(monitor), 0);
    assert_in_range(clock_monotonic_usec() - begin, 300000, 20000000);
    assert_int_equal(read_exit(f, reason), 7);
    assert_string_equal(reason, MONITOR_TERMINATED);
    aq_closep(&fd);
}

static void test_end_at_once_during_a_notice(void **state)
{
    struct folder *f = *state;
    struct monitor_terminate end = { .type = MONITOR_TERMINATE,
                                     .grace_usec = 60000000,
                                     .notice_usec = 60000000 };
    char reason[40];
    pid_t monitor;
    int fd;

    add(f, "notice_signal=10");
    put_shell(f, "trap 'touch noticed' USR1; trap 'exit 7' TERM; touch ready;"
                 " while :; do sleep 0.01; done");
    monitor = start_monitor(f);
    wait_for(f, "ready");
    fd = connect_monitor(f);
    assert_int_equal(send(fd, &end, sizeof(end), 0), sizeof(end));
    wait_for(f, "noticed");
    send_terminate(fd, 60000000);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 7);
    aq_closep(&fd);
}

static void test_log_is_bounded(void **state)
{
    struct folder *f = *state;
    struct stat st;
    char path[96];
    AQ_CLEANUP(aq_freep) char *log = NULL;

    add(f, "log_max=65536");
    put_shell(f, "i=0; while [ $i -lt 3000 ]; do echo $i 0123456789012345678901234567890123456789;"
                 "i=$((i+1)); done; echo last");
    assert_int_equal(wait_monitor(start_monitor(f)), 0);
    (void)snprintf(path, sizeof(path), "%s/log.1", f->path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 32768);
    log = read_text(f, "log");
    assert_true(strlen(log) <= 32768);
    assert_string_equal(log + strlen(log) - 5, "last\n");
}

/* The log cannot grow (SIGXFSZ); the program goes on. */
static void test_log_at_the_limit_of_a_file(void **state)
{
    const struct rlimit limit = { 16384, 16384 };
    struct folder *f = *state;
    struct aq_error err = { 0 };
    char reason[40];
    pid_t pid;

    put_shell(f, "head -c 100000 /dev/zero; exit 7");
    pid = fork();
    if (pid == 0)
        _exit(setrlimit(RLIMIT_FSIZE, &limit) < 0 || monitor_run(f->path, -1, -1, &err) < 0);
    assert_int_equal(wait_monitor(pid), 0);
    assert_int_equal(read_exit(f, reason), 7);
    assert_string_equal(reason, MONITOR_EXITED);
}

/* Read output packets until 'text' was in them. */
static void expect_output(int fd, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT;
    char packet[MONITOR_MESSAGE_MAX];

    while (!strstr(seen.data, text)) {
        ssize_t got = recv(fd, packet, sizeof(packet), 0);

        assert_true(got > 0 && packet[0] == MONITOR_OUTPUT);
        strbuf_add(&seen, packet + 1, (size_t)got - 1);
    }
}

static void test_terminal(void **state)
{
    struct folder *f = *state;
    static const char hello[] = "Iecho $((40+2)); stty size\n", bye[] = "Iexit 7\n";
    const struct monitor_resize size = { .type = MONITOR_RESIZE, .rows = 33, .cols = 101 };
    pid_t monitor;
    char reason[40];
    int fd;

    add(f, "tty=1");
    add(f, "arg=/bin/sh");
    put_program(f);
    monitor = start_monitor(f);
    fd = connect_monitor(f);
    assert_int_equal(send(fd, "A", 1, 0), 1);
    assert_int_equal(send(fd, &size, sizeof(size), 0), sizeof(size));
    assert_int_equal(send(fd, hello, sizeof(hello) - 1, 0), sizeof(hello) - 1);
    expect_output(fd, "42\r\n33 101\r\n");
    aq_closep(&fd);
    fd = connect_monitor(f); /* the earlier output is shown again */
    assert_int_equal(send(fd, "A", 1, 0), 1);
    expect_output(fd, "33 101");
    assert_int_equal(send(fd, bye, sizeof(bye) - 1, 0), sizeof(bye) - 1);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 7);
    aq_closep(&fd);
}

/* Who does not read holds nothing up, and then sees the end, from which there may be a prompt. */
static void test_slow_reader(void **state)
{
    struct folder *f = *state;
    char packet[MONITOR_MESSAGE_MAX];
    bool was_skipped = false;
    pid_t monitor;
    int fd;

    add(f, "tty=1");
    put_shell(
        f, "read go; head -c 3000000 /dev/zero | tr '\\000' x; printf the-end; : >done; read go");
    monitor = start_monitor(f);
    fd = connect_monitor(f);
    assert_int_equal(send(fd, "A", 1, 0), 1);
    assert_int_equal(send(fd, "I\n", 2, 0), 2);
    wait_for(f, "done");
    while (!was_skipped) {
        assert_true(recv(fd, packet, sizeof(packet), 0) > 0);
        was_skipped = packet[0] == MONITOR_SKIPPED;
    }
    expect_output(fd, "the-end");
    assert_int_equal(send(fd, "I\n", 2, 0), 2);
    assert_int_equal(wait_monitor(monitor), 0);
    aq_closep(&fd);
}

/* Those who type at a program that does not read, and go, leave room for others. */
static void test_typing_that_nobody_reads(void **state)
{
    struct folder *f = *state;
    char packet[MONITOR_INPUT_MAX] = "I";
    char reason[40];
    pid_t monitor;
    int fd;

    memset(packet + 1, 'x', sizeof(packet) - 1);
    add(f, "tty=1");
    put_shell(f, "stty raw -echo; touch ready; sleep 1000");
    monitor = start_monitor(f);
    wait_for(f, "ready");
    for (int i = 0; i < 2 * CLIENTS_MAX; i++) {
        fd = connect_monitor(f);
        assert_int_equal(send(fd, "A", 1, 0), 1);
        while (send(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0)
            ;
        assert_int_equal(errno, EAGAIN);
        aq_closep(&fd);
    }
    fd = connect_monitor(f);
    send_terminate(fd, 0);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 128 + SIGKILL);
    aq_closep(&fd);
}

/* ---- standard input ---- */

/* True if the monitor takes our input. */
static bool feed(int fd)
{
    char answer = 0;

    assert_int_equal(send(fd, "N", 1, 0), 1);
    return recv(fd, &answer, 1, 0) == 1 && answer == MONITOR_FED;
}

/* What the programs below wait for. */
static void say_go(const struct folder *f)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/go", f->path);
    assert_int_equal(fs_write_atomic(AT_FDCWD, path, "", 0, 0600, NULL), 0);
}

/* Nothing is lost, and no more is taken than a slow program leaves room for. */
static void test_input_arrives_whole(void **state)
{
    enum { PACKETS = 300 };
    struct folder *f = *state;
    char packet[MONITOR_MESSAGE_MAX] = "I";
    AQ_CLEANUP(aq_freep) char *log = NULL;
    char reason[40];
    int fd, sent = 0;
    pid_t monitor;

    memset(packet + 1, 'x', sizeof(packet) - 1);
    add(f, "input=1000");
    put_shell(f, "while [ ! -e go ]; do sleep 0.01; done; wc -c");
    monitor = start_monitor(f);
    fd = connect_monitor(f);
    assert_true(feed(fd));
    for (struct pollfd room = { .fd = fd, .events = POLLOUT }; poll(&room, 1, 300) == 1; sent++)
        assert_int_equal(send(fd, packet, sizeof(packet), 0), sizeof(packet));
    assert_true(sent > 0 && sent < PACKETS);
    say_go(f);
    for (; sent < PACKETS; sent++)
        assert_int_equal(send(fd, packet, sizeof(packet), 0), sizeof(packet));
    assert_int_equal(send(fd, "D", 1, 0), 1);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 0);
    log = read_text(f, "log");
    assert_int_equal(atoi(log), PACKETS * (MONITOR_MESSAGE_MAX - 1));
    aq_closep(&fd);
}

static void test_input_ends_with_its_client(void **state)
{
    struct folder *f = *state;
    AQ_CLEANUP(aq_freep) char *log = NULL;
    char reason[40];
    pid_t monitor;
    int fd, other;

    add(f, "input=1000");
    put_shell(f, "cat; echo over; exit 5");
    monitor = start_monitor(f);
    fd = connect_monitor(f);
    assert_true(feed(fd));
    other = connect_monitor(f);
    assert_false(feed(other)); /* one gives it */
    assert_int_equal(send(fd, "Iwords ", 7, 0), 7);
    aq_closep(&fd);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 5);
    log = read_text(f, "log");
    assert_string_equal(log, "words over\n");
    aq_closep(&other);
}

/* A program that has closed it, or has ended, is no reason to stop or to die. */
static void test_input_need_not_be_read(void **state)
{
    struct folder *f = *state;
    char packet[MONITOR_MESSAGE_MAX] = "I", reason[40];
    pid_t monitor;
    int fd;

    add(f, "input=1000");
    put_shell(f, "exec </dev/null; while [ ! -e go ]; do sleep 0.01; done; exit 6");
    monitor = start_monitor(f);
    fd = connect_monitor(f);
    assert_true(feed(fd));
    for (int i = 0; i < 100; i++)
        assert_int_equal(send(fd, packet, sizeof(packet), 0), sizeof(packet));
    say_go(f);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 6);
    aq_closep(&fd);
}

static void test_input_is_not_waited_for_for_ever(void **state)
{
    struct folder *f = *state;
    AQ_CLEANUP(aq_freep) char *log = NULL;
    pid_t monitor;
    int fd;

    add(f, "input=1");
    put_shell(f, "cat; echo over; while [ ! -e go ]; do sleep 0.01; done");
    monitor = start_monitor(f);
    fd = connect_monitor(f);
    assert_int_equal(send(fd, "A", 1, 0), 1);
    expect_output(fd, "over\n");
    assert_false(feed(fd)); /* too late */
    say_go(f);
    assert_int_equal(wait_monitor(monitor), 0);
    log = read_text(f, "log");
    assert_string_equal(log, "over\n");
    aq_closep(&fd);
}

static void test_input_is_empty_unless_asked_for(void **state)
{
    struct folder *f = *state;
    AQ_CLEANUP(aq_freep) char *log = NULL;
    pid_t monitor;
    int fd;

    put_shell(f, "cat; while [ ! -e go ]; do sleep 0.01; done; echo over");
    monitor = start_monitor(f);
    fd = connect_monitor(f);
    assert_false(feed(fd));
    say_go(f);
    assert_int_equal(wait_monitor(monitor), 0);
    log = read_text(f, "log");
    assert_string_equal(log, "over\n");
    aq_closep(&fd);
}

/* The given connection is enough, until it ends. */
static void test_socket_comes_when_needed(void **state)
{
    struct folder *f = *state;
    struct monitor_hello hello;
    pid_t monitor;
    char reason[40];
    int pair[2], fd;

    put_shell(f, "sleep 1000");
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    monitor = start_monitor_for(f, pair[1]);
    aq_closep(&pair[1]);
    assert_int_equal(recv(pair[0], &hello, sizeof(hello), 0), sizeof(hello));
    assert_true(exists(f, "started") && !exists(f, "program"));
    fd = connect_monitor(f); /* after a second: the disk may not take a socket later */
    aq_closep(&fd);
    assert_int_equal(shutdown(pair[0], SHUT_RDWR), 0); /* the monitor has a copy of it */
    aq_closep(&pair[0]);
    fd = connect_monitor(f);
    send_terminate(fd, 0);
    assert_int_equal(wait_monitor(monitor), 0);
    assert_int_equal(read_exit(f, reason), 137);
    assert_false(exists(f, "monitor.sock"));
    aq_closep(&fd);
}

static void test_second_monitor_is_refused(void **state)
{
    struct folder *f = *state;
    pid_t first;
    char reason[40];
    int fd;

    put_shell(f, "touch ready; sleep 1000");
    first = start_monitor(f);
    wait_for(f, "ready");
    assert_int_equal(wait_monitor(start_monitor(f)), MONITOR_EXIT_BUSY);
    fd = connect_monitor(f);
    assert_int_equal(send(fd, "?unknown", 8, 0), 8);
    assert_int_equal(send(fd, "T", 1, 0), 1); /* too short: ignored */
    send_terminate(fd, 0);
    assert_int_equal(wait_monitor(first), 0);
    assert_int_equal(read_exit(f, reason), 137);
    aq_closep(&fd);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, folder_new, folder_end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_bad_programs),
        TEST(test_what_cannot_start),
        TEST(test_runs_at_most_once),
        TEST(test_killed_monitor),
        TEST(test_descendants_end),
        TEST(test_terminate),
        TEST(test_timeout),
        TEST(test_signals_around_the_timeout),
        TEST(test_notice_does_not_become_longer),
        TEST(test_end_at_once_during_a_notice),
        TEST(test_a_lease_ends_the_program),
        TEST(test_a_lease_limits_other_graces),
        TEST(test_a_lease_is_renewed_or_dropped),
        TEST(test_grace_of_descendants),
        TEST(test_grace_ends),
        TEST(test_log_is_bounded),
        TEST(test_log_at_the_limit_of_a_file),
        TEST(test_terminal),
        TEST(test_typing_that_nobody_reads),
        TEST(test_slow_reader),
        TEST(test_input_arrives_whole),
        TEST(test_input_ends_with_its_client),
        TEST(test_input_need_not_be_read),
        TEST(test_input_is_not_waited_for_for_ever),
        TEST(test_input_is_empty_unless_asked_for),
        TEST(test_socket_comes_when_needed),
        TEST(test_second_monitor_is_refused),
    };

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* to see that nothing is left */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
