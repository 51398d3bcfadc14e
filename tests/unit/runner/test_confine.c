/* SPDX-License-Identifier: Apache-2.0 */
/* In a child for each: what a filter refuses it refuses forever. */
#include "testing.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/confine.h"

#define HIGHER (1L << 32) /* of what the Linux kernel takes as an int it does not look at this */

enum { VSOCK = 1, NESTING }; /* what refuses it */

static const struct {
    long number, args[3];
    int by, code; /* 0 = nothing does, but the Linux kernel itself may */
} calls[] = {
    { __NR_socket, { AF_VSOCK, SOCK_STREAM, 0 }, VSOCK, ENOSYS },
    { __NR_socket, { HIGHER | AF_VSOCK, SOCK_STREAM, 0 }, VSOCK, ENOSYS },
    { __NR_socket, { HIGHER | AF_UNIX, SOCK_STREAM, 0 }, 0, 0 },
    { __NR_socket, { AF_INET, SOCK_STREAM, 0 }, 0, 0 },
    { __NR_unshare, { CLONE_NEWUSER }, NESTING, ENOSYS },
    { __NR_unshare, { HIGHER | CLONE_NEWNET }, NESTING, ENOSYS },
    { __NR_unshare, { CLONE_NEWTIME }, NESTING, ENOSYS },
    { __NR_unshare, { CLONE_FILES }, 0, 0 },
    { __NR_clone, { CLONE_NEWUSER | SIGCHLD, 0, 0 }, NESTING, ENOSYS },
    { __NR_clone, { HIGHER | CLONE_NEWNS | CLONE_NEWUSER | SIGCHLD, 0, 0 }, NESTING, ENOSYS },
    { __NR_clone, { SIGCHLD, 0, 0 }, 0, 0 },
    { __NR_clone3, { 0, 0, 0 }, NESTING, ENOSYS },
    { __NR_setns, { -1, 0, 0 }, NESTING, EPERM },
};

/* What the call answers: 0, or errno. */
static int answer(const long args[3], long number)
{
    pid_t self = getpid();
    long r = syscall(number, args[0], args[1], args[2], 0L, 0L);

    if (getpid() != self)
        _exit(0); /* what clone(2) made */
    return r < 0 ? errno : 0;
}

static int answer_confined(const long args[3], long number, bool may_nest)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        struct aq_error err = { 0 };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || confine(may_nest, &err) < 0)
            _exit(255);
        _exit(answer(args, number));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 255);
    return WEXITSTATUS(status);
}

static void test_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(calls); i++)
        for (int may_nest = 0; may_nest <= 1; may_nest++) {
            bool is_refused = calls[i].by && !(calls[i].by == NESTING && may_nest);
            int got = answer_confined(calls[i].args, calls[i].number, may_nest);

            if (is_refused)
                assert_int_equal(got, calls[i].code);
            else if (!calls[i].by)
                assert_int_equal(got, 0);
            else
                assert_int_not_equal(got, ENOSYS);
        }
}

#if defined(__x86_64__)
/* A call of a program for i386; killed by SIGSEGV where the Linux kernel runs none. */
static int answer_i386(int number, long argument)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        struct aq_error err = { 0 };
        long r = -1;

        (void)signal(SIGSEGV, SIG_DFL);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || confine(false, &err) < 0)
            _exit(255);
        __asm__ volatile("int $0x80"
                         : "=a"(r)
                         : "a"((long)number), "b"(argument), "c"(SOCK_STREAM), "d"(0L)
                         : "memory", "r8", "r9", "r10", "r11");
        _exit(r < 0 ? (int)-r : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
        skip();
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_calls_of_i386(void **state)
{
    static const struct {
        int number;
        long argument;
        int code;
    } rows[] = { { 359, AF_VSOCK, ENOSYS },
                 { 359, AF_INET, 0 },
                 { 102, 1, ENOSYS },
                 { 310, CLONE_NEWUSER, ENOSYS },
                 { 120, CLONE_NEWUSER, ENOSYS },
                 { 435, 0, ENOSYS },
                 { 346, -1, EPERM },
                 { 310, CLONE_FILES, 0 } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_int_equal(answer_i386(rows[i].number, rows[i].argument), rows[i].code);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
#if defined(__x86_64__)
        cmocka_unit_test(test_calls_of_i386),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
