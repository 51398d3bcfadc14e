/* SPDX-License-Identifier: Apache-2.0 */
/* In a child for each: what a filter refuses it refuses forever. */
#include "testing.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <openssl/evp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/runtime/seccomp.h"
#include "agent/runtime/seccomp_filter.h"
#include "base/strbuf.h"

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

#define ALLOW "\"action\":\"SCMP_ACT_ALLOW\""
#define COMPARE(index, op, value) \
    "{\"index\":" #index ",\"op\":\"SCMP_CMP_" op "\",\"value\":" value ",\"valueTwo\":0}"
#define WITH(names, args) "{\"names\":[" names "]," ALLOW ",\"args\":[" args "]}"
#define CALLS "\"clone\",\"clone3\",\"setns\",\"socketcall\",\"unshare\""
/* By the test itself, and by sanitizers. */
#define NEEDED                                                                              \
    "{\"names\":[\"exit_group\",\"getpid\",\"gettid\",\"mmap\",\"munmap\",\"sigaltstack\"," \
    "\"write\"]," ALLOW "}"
/* What is not listed gets the code. */
#define LIST_OR(code, rules)                                                           \
    "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":" code ",\"archMap\":[" \
    "{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[\"SCMP_ARCH_X86\","  \
    "\"SCMP_ARCH_X32\"]}],\"syscalls\":[" NEEDED "," rules "]}"
#define LIST(rules) LIST_OR("95", rules) /* EOPNOTSUPP */
#define ALL_BUT_AUDIT                                                                              \
    "{\"names\":[\"socket\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":22,\"args\":[" COMPARE(    \
        0, "EQ",                                                                                   \
        "16") "," COMPARE(2, "EQ",                                                                 \
                          "9") "]}," WITH("\"socket\"",                                            \
                                          COMPARE(2, "NE",                                         \
                                                  "9")) "," WITH("\"socket\"",                     \
                                                                 COMPARE(                          \
                                                                     0, "NE",                      \
                                                                     "16")) "," WITH("\"socket\"", \
                                                                                     COMPARE(2,    \
                                                                                             "NE", \
                                                                                             "9"))

static const char *const profiles[] = {
    SECCOMP_PROFILE_OPEN,
    "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[" CALLS ",\"socket\"],"
    "\"action\":\"SCMP_ACT_LOG\"}]}",
    LIST("{\"names\":[" CALLS ",\"socket\"]," ALLOW "}"),
    LIST("{\"names\":[" CALLS "]," ALLOW "}," ALL_BUT_AUDIT),
    LIST_OR("38", "{\"names\":[" CALLS "]," ALLOW "}," ALL_BUT_AUDIT),
    LIST_OR("1", "{\"names\":[" CALLS "]," ALLOW "}," ALL_BUT_AUDIT),
    LIST("{\"names\":[" CALLS "]," ALLOW
         "}," WITH("\"socket\"", COMPARE(0, "LT", "16") "," COMPARE(0, "GE", "16"))),
};

/* The filter that a runtime gets, decoded. */
static void make_filter(const char *profile, bool may_nest, struct strbuf *ret)
{
    static const char *const none[] = { NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf rules = STRBUF_INIT, text = STRBUF_INIT;
    struct seccomp_host host = { .release = "6.1", .capabilities = none, .may_nest = may_nest };
    struct aq_error err = { 0 };
    struct utsname names;
    int len;

    assert_int_equal(uname(&names), 0);
    host.machine = names.machine;
    if (seccomp_translate(profile, strlen(profile), &host, &rules, &err) < 0
        || seccomp_filter_make(rules.data, &text, &err) < 0)
        fail_msg("%s: %s", profile, err.text);
    assert_true(strbuf_reserve(ret, text.len));
    len = EVP_DecodeBlock((unsigned char *)ret->data, (const unsigned char *)text.data,
                          (int)text.len);
    assert_true(len > 0);
    ret->len = (size_t)len / sizeof(struct sock_filter) * sizeof(struct sock_filter);
}

static int confine(const struct strbuf *filter)
{
    struct sock_fprog program = { .len = (unsigned short)(filter->len / sizeof(struct sock_filter)),
                                  .filter = (struct sock_filter *)(void *)filter->data };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* What the call answers: 0, or errno. */
static int answer(const long args[3], long number)
{
    pid_t self = getpid();
    long r = syscall(number, args[0], args[1], args[2], 0L, 0L);

    if (getpid() != self)
        _exit(0); /* what clone(2) made */
    return r < 0 ? errno : 0;
}

static int answer_confined(const long args[3], long number, const struct strbuf *filter)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        if (confine(filter) < 0)
            _exit(255);
        _exit(answer(args, number));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 255);
    return WEXITSTATUS(status);
}

static void check_calls(const char *profile, bool may_nest)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;

    make_filter(profile, may_nest, &filter);
    for (size_t i = 0; i < AQ_COUNT(calls); i++) {
        bool is_refused = calls[i].by && !(calls[i].by == NESTING && may_nest);
        int got = answer_confined(calls[i].args, calls[i].number, &filter);

        if (is_refused ? got != calls[i].code : calls[i].by ? got == ENOSYS : got != 0)
            fail_msg("call %zu: %d, by %s", i, got, profile);
    }
}

static void test_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(profiles); i++)
        for (int may_nest = 0; may_nest <= 1; may_nest++)
            check_calls(profiles[i], may_nest);
}

/* What a profile says of the same calls holds as well. */
static void test_what_a_profile_says(void **state)
{
    static const struct {
        const char *rules;
        long number, args[3];
        int code;
    } rows[] = {
        { ALL_BUT_AUDIT, __NR_socket, { AF_NETLINK, SOCK_RAW, 9 }, EINVAL },
        { ALL_BUT_AUDIT, __NR_socket, { AF_NETLINK, SOCK_RAW, 0 }, 0 },
        { WITH("\"socket\"", COMPARE(0, "EQ", "2")), __NR_socket, { AF_INET, SOCK_STREAM }, 0 },
        { WITH("\"socket\"", COMPARE(0, "EQ", "2")), __NR_socket, { AF_UNIX, SOCK_STREAM }, 95 },
        { WITH("\"socket\"", COMPARE(0, "EQ", "40")), __NR_socket, { AF_VSOCK, 1 }, ENOSYS },
        { WITH("\"socket\"", COMPARE(0, "LE", "1")), __NR_socket, { AF_INET, SOCK_STREAM }, 95 },
        { WITH("\"socket\"", COMPARE(0, "GT", "1")), __NR_socket, { AF_INET, SOCK_STREAM }, 0 },
        { WITH("\"unshare\"", COMPARE(0, "MASKED_EQ", "1024")), __NR_unshare, { CLONE_FS }, 0 },
        { WITH("\"unshare\"", COMPARE(0, "MASKED_EQ", "1024")), __NR_unshare, { CLONE_FILES }, 95 },
        { WITH("\"unshare\"", COMPARE(0, "NE", "268435456")), __NR_unshare, { CLONE_FS }, 0 },
        { WITH("\"unshare\"", COMPARE(0, "NE", "1024")), __NR_unshare, { CLONE_NEWUSER }, ENOSYS },
        { WITH("\"getuid\"", ""), __NR_unshare, { CLONE_FS }, 95 },
        { "{\"names\":[\"unshare\"],\"action\":\"SCMP_ACT_ERRNO\"}",
          __NR_unshare,
          { CLONE_FS },
          EPERM },
        { WITH("\"getuid\"", ""), __NR_clone3, { 0 }, ENOSYS },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_freep) char *profile = aq_format(LIST("%s"), rows[i].rules);
        AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;
        int got;

        make_filter(profile, false, &filter);
        got = answer_confined(rows[i].args, rows[i].number, &filter);
        assert_row(got == rows[i].code, "row %zu: %d", i, got);
    }
}

/* Of families the profile names two by what they are not. */
static void test_families(void **state)
{
    static const char *const texts[] = { LIST("{\"names\":[\"socket\"]," ALLOW "}"),
                                         LIST(ALL_BUT_AUDIT), LIST_OR("38", ALL_BUT_AUDIT) };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;

        make_filter(texts[i], false, &filter);
        for (int family = 0; family < AF_MAX; family++)
            for (int protocol = 0; protocol <= 9; protocol += 9) {
                const long args[3] = { family, SOCK_RAW, protocol };
                int got = answer_confined(args, __NR_socket, &filter);
                bool is_audit = i > 0 && family == AF_NETLINK && protocol == 9;

                assert_row(family == AF_VSOCK ? got == ENOSYS
                           : is_audit         ? got == EINVAL
                                              : got != ENOSYS && got != EOPNOTSUPP,
                           "profile %zu, family %d, protocol %d: %d", i, family, protocol, got);
            }
    }
}

#if defined(__x86_64__)
/* A call of a program for i386; killed by SIGSEGV where the Linux kernel runs none. */
static int answer_i386(int number, long argument, const struct strbuf *filter)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        long r = -1;

        (void)signal(SIGSEGV, SIG_DFL);
        if (confine(filter) < 0)
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
                 { 102, 1, EAFNOSUPPORT },
                 { 310, CLONE_NEWUSER, ENOSYS },
                 { 120, CLONE_NEWUSER, ENOSYS },
                 { 435, 0, ENOSYS },
                 { 346, -1, EPERM },
                 { 310, CLONE_FILES, 0 } };

    (void)state;
    for (size_t k = 0; k < AQ_COUNT(profiles); k++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;

        if (!strstr(profiles[k], "SCMP_ARCH_X86\""))
            continue;
        make_filter(profiles[k], false, &filter);
        for (size_t i = 0; i < AQ_COUNT(rows); i++)
            assert_row(answer_i386(rows[i].number, rows[i].argument, &filter) == rows[i].code,
                       "call %zu of profile %zu", i, k);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_what_a_profile_says),
        cmocka_unit_test(test_families),
#if defined(__x86_64__)
        cmocka_unit_test(test_calls_of_i386),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
