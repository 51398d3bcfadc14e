/* SPDX-License-Identifier: Apache-2.0 */
/* device_filter.c - which device nodes the processes of a cgroup may use (cgroup version 2) */
#include "monitor/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANY (-1)

struct rule {
    char type;            /* 'c', 'b' or 'a' */
    int32_t major, minor; /* ANY = all */
    uint32_t access;      /* BPF_DEVCG_ACC_* */
};

/* Registers: r2 = type, r3 = access, r4 = major, r5 = minor. */
struct assembly {
    struct bpf_insn code[DEVICE_RULES_MAX * 8 + 16];
    size_t count;
};

static void device_filter_emit(struct assembly *a, uint8_t code, uint8_t dst, uint8_t src,
                               int16_t off, int32_t imm)
{
    a->code[a->count++] = (struct bpf_insn){
        .code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm
    };
}

static bool device_filter_parse_number(const char **at, int32_t *ret)
{
    char *end;
    long value;

    if (**at == '*') {
        *ret = ANY;
        (*at)++;
        return true;
    }
    value = strtol(*at, &end, 10);
    if (end == *at || value < 0 || value > INT32_MAX)
        return false;
    *ret = (int32_t)value;
    *at = end;
    return true;
}

static int device_filter_parse_rule(const char *text, struct rule *ret, struct aq_error *err)
{
    const char *at = text + 2;

    *ret = (struct rule){ .type = text[0] };
    if (!strchr("abc", text[0]) || text[0] == '\0' || text[1] != ' '
        || !device_filter_parse_number(&at, &ret->major) || *at++ != ':'
        || !device_filter_parse_number(&at, &ret->minor) || *at++ != ' ')
        return aq_fail(err, EINVAL, "'%s' is no device rule", text);
    for (; *at; at++) {
        if (!strchr("rwm", *at))
            return aq_fail(err, EINVAL, "'%s' is no device rule", text);
        ret->access |= *at == 'r'   ? BPF_DEVCG_ACC_READ
                       : *at == 'w' ? BPF_DEVCG_ACC_WRITE
                                    : BPF_DEVCG_ACC_MKNOD;
    }
    return 0;
}

static void device_filter_load_context(struct assembly *a)
{
    const uint8_t load = BPF_LDX | BPF_W | BPF_MEM;

    /* access_type is (access << 16) | type */
    device_filter_emit(a, load, BPF_REG_2, BPF_REG_1,
                       offsetof(struct bpf_cgroup_dev_ctx, access_type), 0);
    device_filter_emit(a, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_2, 0, 0);
    device_filter_emit(a, BPF_ALU | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xFFFF);
    device_filter_emit(a, BPF_ALU | BPF_RSH | BPF_K, BPF_REG_3, 0, 0, 16);
    device_filter_emit(a, load, BPF_REG_4, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, major),
                       0);
    device_filter_emit(a, load, BPF_REG_5, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, minor),
                       0);
}

/* If all of it fits, allow; else go on behind it. */
static void device_filter_compile_rule(struct assembly *a, const struct rule *rule)
{
    const uint8_t differs = BPF_JMP | BPF_JNE | BPF_K;
    size_t jumps[4], jump_count = 0;

    if (rule->type != 'a') {
        jumps[jump_count++] = a->count;
        device_filter_emit(a, differs, BPF_REG_2, 0, 0,
                           rule->type == 'c' ? BPF_DEVCG_DEV_CHAR : BPF_DEVCG_DEV_BLOCK);
    }
    /* any wanted access that the rule does not give */
    device_filter_emit(a, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_0, BPF_REG_3, 0, 0);
    device_filter_emit(a, BPF_ALU | BPF_AND | BPF_K, BPF_REG_0, 0, 0, (int32_t)(~rule->access & 7));
    jumps[jump_count++] = a->count;
    device_filter_emit(a, differs, BPF_REG_0, 0, 0, 0);
    if (rule->major != ANY) {
        jumps[jump_count++] = a->count;
        device_filter_emit(a, differs, BPF_REG_4, 0, 0, rule->major);
    }
    if (rule->minor != ANY) {
        jumps[jump_count++] = a->count;
        device_filter_emit(a, differs, BPF_REG_5, 0, 0, rule->minor);
    }
    device_filter_emit(a, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1);
    device_filter_emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    for (size_t i = 0; i < jump_count; i++)
        a->code[jumps[i]].off = (int16_t)(a->count - jumps[i] - 1);
}

static int device_filter_load(const struct assembly *a, struct aq_error *err)
{
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE };
    int fd;

    attr.insns = (uintptr_t)a->code;
    attr.insn_cnt = (uint32_t)a->count;
    attr.license = (uintptr_t) "Apache-2.0";
    fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
    return fd < 0 ? aq_fail_errno(err, "load the device filter") : fd;
}

int device_filter_attach(const char *cgroup, const struct texts *rules, struct aq_error *err)
{
    struct assembly a = { .count = 0 };
    AQ_CLEANUP(aq_closep) int directory = -1, program = -1;
    union bpf_attr attr = { .attach_type = BPF_CGROUP_DEVICE };

    if (rules->count > DEVICE_RULES_MAX)
        return aq_fail(err, E2BIG, "more than %d device rules", DEVICE_RULES_MAX);
    device_filter_load_context(&a);
    for (size_t i = 0; i < rules->count; i++) {
        struct rule rule;
        int r = device_filter_parse_rule(rules->items[i], &rule, err);

        if (r < 0)
            return r;
        device_filter_compile_rule(&a, &rule);
    }
    device_filter_emit(&a, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0);
    device_filter_emit(&a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    program = device_filter_load(&a, err);
    if (program < 0)
        return program;
    directory = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return aq_fail_errno(err, "open '%s'", cgroup);
    attr.target_fd = (uint32_t)directory;
    attr.attach_bpf_fd = (uint32_t)program;
    if (syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof(attr)) < 0)
        return aq_fail_errno(err, "attach the device filter to '%s'", cgroup);
    return 0;
}
