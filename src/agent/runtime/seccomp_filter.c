/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_filter.c - compiles a seccomp profile to a BPF filter, once */
#include "agent/runtime/seccomp_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"

#define ARGS_MAX 6 /* of a system call */
#define FILTER_MAX (1u << 20)

static int seccomp_filter_reject(struct aq_error *err, const char *what, const char *text)
{
    return aq_fail(err, EINVAL, "%s '%s' is not known", what, text ? text : "");
}

/* 'code' is what SCMP_ACT_ERRNO returns. */
static int seccomp_filter_read_action(const char *name, const json_t *code, uint32_t *ret,
                                      struct aq_error *err)
{
    static const struct {
        const char *name;
        uint32_t action;
    } actions[] = { { "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW },
                    { "SCMP_ACT_LOG", SCMP_ACT_LOG },
                    { "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
                    { "SCMP_ACT_KILL", SCMP_ACT_KILL },
                    { "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
                    { "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS } };

    if (name && strcmp(name, "SCMP_ACT_ERRNO") == 0) {
        *ret = SCMP_ACT_ERRNO(json_is_integer(code) ? (uint32_t)json_integer_value(code) : EPERM);
        return 0;
    }
    for (size_t i = 0; name && i < AQ_COUNT(actions); i++)
        if (strcmp(name, actions[i].name) == 0) {
            *ret = actions[i].action;
            return 0;
        }
    return seccomp_filter_reject(err, "action", name);
}

static int seccomp_filter_read_operator(const char *name, enum scmp_compare *ret,
                                        struct aq_error *err)
{
    static const struct {
        const char *name;
        enum scmp_compare op;
    } operators[] = { { "SCMP_CMP_NE", SCMP_CMP_NE },
                      { "SCMP_CMP_LT", SCMP_CMP_LT },
                      { "SCMP_CMP_LE", SCMP_CMP_LE },
                      { "SCMP_CMP_EQ", SCMP_CMP_EQ },
                      { "SCMP_CMP_GE", SCMP_CMP_GE },
                      { "SCMP_CMP_GT", SCMP_CMP_GT },
                      { "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ } };

    for (size_t i = 0; name && i < AQ_COUNT(operators); i++)
        if (strcmp(name, operators[i].name) == 0) {
            *ret = operators[i].op;
            return 0;
        }
    return seccomp_filter_reject(err, "operator", name);
}

/* "SCMP_ARCH_X86_64" */
static int seccomp_filter_add_architecture(scmp_filter_ctx filter, const char *name,
                                           struct aq_error *err)
{
    char lower[32] = "";
    uint32_t token;
    int r;

    if (!name || strncmp(name, "SCMP_ARCH_", 10) != 0)
        return seccomp_filter_reject(err, "architecture", name);
    for (size_t i = 0; i < sizeof(lower) - 1 && name[10 + i]; i++)
        lower[i] = (char)(name[10 + i] >= 'A' && name[10 + i] <= 'Z' ? name[10 + i] + 32
                                                                     : name[10 + i]);
    token = seccomp_arch_resolve_name(lower);
    if (token == 0)
        return seccomp_filter_reject(err, "architecture", name);
    r = seccomp_arch_add(filter, token);
    return r < 0 && r != -EEXIST ? aq_fail(err, -r, "architecture '%s'", name) : 0;
}

/* The conditions of a rule; *ret_is_any if one of them is enough, as several are
 * about one argument.
 */
static int seccomp_filter_read_args(const json_t *args, struct scmp_arg_cmp ret[ARGS_MAX],
                                    bool *ret_is_any, struct aq_error *err)
{
    unsigned seen = 0;
    const json_t *arg;
    size_t i;

    *ret_is_any = false;
    json_array_foreach(args, i, arg) {
        json_int_t index = json_integer_value(json_object_get(arg, "index"));
        int r;

        if (i == ARGS_MAX || index < 0 || index >= ARGS_MAX)
            return aq_fail(err, EINVAL, "a rule has more than %d arguments", ARGS_MAX);
        ret[i] = (struct scmp_arg_cmp){
            .arg = (unsigned)index,
            .datum_a = (scmp_datum_t)json_integer_value(json_object_get(arg, "value")),
            .datum_b = (scmp_datum_t)json_integer_value(json_object_get(arg, "valueTwo")),
        };
        r = seccomp_filter_read_operator(json_string_value(json_object_get(arg, "op")), &ret[i].op,
                                         err);
        if (r < 0)
            return r;
        *ret_is_any |= (seen & 1u << index) != 0;
        seen |= 1u << index;
    }
    return 0;
}

static int seccomp_filter_add_name(scmp_filter_ctx filter, uint32_t action, const char *name,
                                   const struct scmp_arg_cmp *args, size_t count, bool is_any,
                                   struct aq_error *err)
{
    int number = name ? seccomp_syscall_resolve_name(name) : __NR_SCMP_ERROR;
    int r = 0;

    if (number == __NR_SCMP_ERROR)
        return 0; /* of newer kernels than the library knows */
    if (!is_any)
        r = seccomp_rule_add_array(filter, action, number, (unsigned)count, args);
    for (size_t i = 0; r == 0 && is_any && i < count; i++)
        r = seccomp_rule_add_array(filter, action, number, 1, &args[i]);
    return r < 0 ? aq_fail(err, -r, "the rule for '%s': %s", name, strerror(-r)) : 0;
}

static int seccomp_filter_add_rule(scmp_filter_ctx filter, uint32_t usual, const json_t *rule,
                                   struct aq_error *err)
{
    const json_t *args = json_object_get(rule, "args"), *name;
    struct scmp_arg_cmp conditions[ARGS_MAX];
    bool is_any = false;
    uint32_t action = usual;
    size_t i;
    int r = seccomp_filter_read_action(json_string_value(json_object_get(rule, "action")),
                                       json_object_get(rule, "errnoRet"), &action, err);

    if (r == 0)
        r = seccomp_filter_read_args(args, conditions, &is_any, err);
    if (r < 0 || action == usual)
        return r;
    json_array_foreach(json_object_get(rule, "names"), i, name) {
        r = seccomp_filter_add_name(filter, action, json_string_value(name), conditions,
                                    json_array_size(args), is_any, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int seccomp_filter_add_all(scmp_filter_ctx filter, uint32_t usual, const json_t *root,
                                  struct aq_error *err)
{
    const json_t *item;
    size_t i;
    int r = 0;

    json_array_foreach(json_object_get(root, "architectures"), i, item) {
        r = seccomp_filter_add_architecture(filter, json_string_value(item), err);
        if (r < 0)
            return r;
    }
    json_array_foreach(json_object_get(root, "syscalls"), i, item) {
        r = seccomp_filter_add_rule(filter, usual, item, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static void seccomp_filter_encode(const char *bytes, size_t len, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *text = aq_alloc(len / 3 * 4 + 5);

    (void)EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)bytes, (int)len);
    strbuf_adds(out, text);
}

static int seccomp_filter_export(scmp_filter_ctx filter, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf bytes = STRBUF_INIT;
    AQ_CLEANUP(aq_closep) int memory = memfd_create("seccomp", MFD_CLOEXEC);
    AQ_CLEANUP(aq_freep) char *path = aq_format("/proc/self/fd/%d", memory);
    int r = memory < 0 ? -errno : seccomp_export_bpf(filter, memory);

    if (r == 0)
        r = fs_read(AT_FDCWD, path, FILTER_MAX, &bytes, NULL);
    if (r == 0)
        seccomp_filter_encode(bytes.data, bytes.len, out);
    return r < 0 ? aq_fail(err, -r, "%s", strerror(-r)) : 0;
}

int seccomp_filter_make(const char *seccomp, struct strbuf *out, struct aq_error *err)
{
    json_t *root = json_loads(seccomp, 0, NULL);
    uint32_t usual = 0;
    int r = seccomp_filter_read_action(json_string_value(json_object_get(root, "defaultAction")),
                                       json_object_get(root, "defaultErrnoRet"), &usual, err);
    scmp_filter_ctx filter = r == 0 ? seccomp_init(usual) : NULL;

    if (r == 0 && !filter)
        r = aq_fail(err, EINVAL, "libseccomp rejects the default action of the profile");
    if (r == 0)
        r = seccomp_filter_add_all(filter, usual, root, err);
    if (r == 0)
        r = seccomp_filter_export(filter, out, err);
    if (filter)
        seccomp_release(filter);
    json_decref(root);
    return r;
}
