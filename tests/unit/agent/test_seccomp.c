/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "agent/runtime/seccomp.h"
#include "agent/runtime/seccomp_filter.h"
#include "base/strbuf.h"

static const char *const none[] = { NULL }, *const some[] = { "CAP_SYS_CHROOT", NULL };

static const char profile[] =
    "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,\"archMap\":["
    "{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[\"SCMP_ARCH_X86\"]},"
    "{\"architecture\":\"SCMP_ARCH_AARCH64\",\"subArchitectures\":[\"SCMP_ARCH_ARM\"]}],"
    "\"syscalls\":["
    "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[],\"includes\":{}},"
    "{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"caps\":[\"CAP_SYS_CHROOT\"]}},"
    "{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1,"
    "\"excludes\":{\"caps\":[\"CAP_SYS_CHROOT\"]}},"
    "{\"names\":[\"arch_prctl\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"arches\":[\"amd64\"]}},"
    "{\"names\":[\"ptrace\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"minKernel\":\"4.8\"}},"
    "{\"names\":[\"personality\"],\"action\":\"SCMP_ACT_ALLOW\","
    "\"args\":[{\"index\":0,\"value\":8,\"valueTwo\":0,\"op\":\"SCMP_CMP_EQ\"}]}]}";

/* OURS "read:ALLOW chroot:ERRNO ..." of what holds on the host. */
static char *translate(const char *machine, const char *release, const char *const *capabilities,
                       size_t *ret_architectures)
{
    const struct seccomp_host host = { machine, release, capabilities, true };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct strbuf rules = STRBUF_INIT;
    struct aq_error err = { 0 };
    json_t *root, *rule;
    size_t i;

    assert_int_equal(seccomp_translate(profile, strlen(profile), &host, &text, &err), 0);
    root = json_loads(text.data, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "defaultErrnoRet")), 38);
    *ret_architectures = json_array_size(json_object_get(root, "architectures"));
    json_array_foreach(json_object_get(root, "syscalls"), i, rule)
        strbuf_addf(&rules, "%s%s:%s%s", i ? " " : "",
                    json_string_value(json_array_get(json_object_get(rule, "names"), 0)),
                    json_string_value(json_object_get(rule, "action")) + strlen("SCMP_ACT_"),
                    json_object_get(rule, "args") ? "(args)" : "");
    json_decref(root);
    return strbuf_steal(&rules);
}

#define OURS "socket:ERRNO(args) socketcall:ERRNO afs_syscall:ERRNO "

static const struct {
    const char *machine, *release;
    const char *const *capabilities;
    const char *rules;
    size_t architectures;
} cases[] = {
    { "x86_64", "6.1.0-18-amd64", some,
      OURS "read:ALLOW chroot:ALLOW arch_prctl:ALLOW ptrace:ALLOW personality:ALLOW(args)", 2 },
    { "x86_64", "6.1.0-18-amd64", none,
      OURS "read:ALLOW chroot:ERRNO arch_prctl:ALLOW ptrace:ALLOW personality:ALLOW(args)", 2 },
    { "aarch64", "4.8.0", none, OURS "read:ALLOW chroot:ERRNO ptrace:ALLOW personality:ALLOW(args)",
      2 },
    { "aarch64", "4.4.302", none, OURS "read:ALLOW chroot:ERRNO personality:ALLOW(args)", 2 },
    { "mystery", "6.1", none, OURS "read:ALLOW chroot:ERRNO ptrace:ALLOW personality:ALLOW(args)",
      0 },
};

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        size_t architectures;
        AQ_CLEANUP(aq_freep) char *rules = translate(cases[i].machine, cases[i].release,
                                                     cases[i].capabilities, &architectures);

        assert_string_equal(rules, cases[i].rules);
        assert_int_equal(architectures, cases[i].architectures);
    }
}

static void test_no_profile(void **state)
{
    static const char *const texts[] = { "", "[]", "{", "{\"defaultAction\":\"X\"}",
                                         "{\"syscalls\":[]}" };
    const struct seccomp_host host = { "x86_64", "6.1", none, false };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct aq_error err = { 0 };

        assert_int_equal(seccomp_translate(texts[i], strlen(texts[i]), &host, &out, &err), -EINVAL);
        assert_int_equal(out.len, 0);
    }
}

/* ---- as the kernel takes it ---- */

#define HEAD \
    "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_X86_64\"],\"syscalls\":["
#define RULE(names, action, args) \
    HEAD "{\"names\":[" names "],\"action\":\"" action "\",\"args\":[" args "]}]}"
#define ARG(index, op) "{\"index\":" #index ",\"value\":8,\"valueTwo\":0,\"op\":\"" op "\"}"

static const struct {
    const char *why, *text;
    int result;
    bool is_first; /* the filter is that of the first case */
} filters[] = {
    { "a rule", RULE("\"read\"", "SCMP_ACT_ALLOW", ""), 0, true },
    { "a system call that is not known", RULE("\"read\",\"nothing\"", "SCMP_ACT_ALLOW", ""), 0,
      true },
    { "one of two values",
      RULE("\"read\"", "SCMP_ACT_ALLOW", ARG(0, "SCMP_CMP_EQ") "," ARG(0, "SCMP_CMP_NE")), 0,
      false },
    { "a condition", RULE("\"read\"", "SCMP_ACT_ALLOW", ARG(0, "SCMP_CMP_EQ")), 0, false },
    { "what happens anyway", RULE("\"read\"", "SCMP_ACT_ERRNO", ""), 0, false },
    { "an action of nobody", RULE("\"read\"", "SCMP_ACT_SING", ""), -EINVAL, false },
    { "an operator of nobody", RULE("\"read\"", "SCMP_ACT_ALLOW", ARG(0, "SCMP_CMP_X")), -EINVAL,
      false },
    { "a seventh argument", RULE("\"read\"", "SCMP_ACT_ALLOW", ARG(6, "SCMP_CMP_EQ")), -EINVAL,
      false },
    { "an architecture of nobody",
      "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_VAX\"]}", -EINVAL,
      false },
    { "no default", "{}", -EINVAL, false },
    { "no JSON", "{", -EINVAL, false },
};

static void test_filter(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf first = STRBUF_INIT;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(filters); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct aq_error err = { 0 };
        int r = seccomp_filter_make(filters[i].text, &out, &err);

        assert_row(r == filters[i].result, "%s: %d %s", filters[i].why, r, err.text);
        if (r < 0)
            continue;
        if (i == 0)
            strbuf_adds(&first, out.data);
        /* ld [4]: the architecture */
        assert_row(strncmp(out.data, "IAAAAAQAAAA", 11) == 0, "%s: %s", filters[i].why, out.data);
        assert_row((strcmp(out.data, first.data) == 0) == filters[i].is_first, "%s: %s",
                   filters[i].why, out.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rules),
                                        cmocka_unit_test(test_no_profile),
                                        cmocka_unit_test(test_filter) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
