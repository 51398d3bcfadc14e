/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - filters of system calls beside the one that is made of the node's profile
 *
 * The Linux kernel takes the stricter answer of all filters, so this one holds with every profile
 * and with none. It looks at the lower half of an argument, as the kernel does: a profile's rule
 * compares all 64 bits, of which AF_VSOCK is only the lower 32.
 *
 * clone3(2) and socketcall(2) have their arguments in memory, where no filter looks: ENOSYS,
 * upon which libraries use clone(2) and socket(2).
 */
#include "runner/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the lower half of an argument lies elsewhere"
#endif

#define REFUSE(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Else the next 'count' statements are left out. */
#define IF_EQUAL(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define IF_ANY(bits, count) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, (count))

/* Of x86-64 the calls of x32, too. */
#define LOAD_CALL LOAD(nr), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~0x40000000u) /* 2 statements */
#define NO_CALL(number, code) IF_EQUAL(number, 1), REFUSE(code)               /* 2 */
#define NO_FLAGS(number, flags) \
    IF_EQUAL(number, 4), LOAD(args[0]), IF_ANY(flags, 1), REFUSE(ENOSYS), ALLOW /* 5 */
#define NO_VSOCK(number) \
    IF_EQUAL(number, 4), LOAD(args[0]), IF_EQUAL(AF_VSOCK, 1), REFUSE(ENOSYS), ALLOW /* 5 */

#define NAMESPACES                                                                          \
    ((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER \
                | CLONE_NEWPID | CLONE_NEWNET))
#define TIME_NAMESPACE 0x80u /* CLONE_NEWTIME; to clone(2) it is a part of a signal's number */

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "which architectures do programs have here?"
#endif

/* Programs of other architectures than these get no call done. */
static struct sock_filter confine_sockets[] = {
    LOAD(arch),
    IF_EQUAL(OWN_ARCHITECTURE, 8),
    LOAD_CALL,
    NO_VSOCK(__NR_socket),
    ALLOW,
#if defined(__x86_64__)
    IF_EQUAL(AUDIT_ARCH_I386, 10),
    LOAD_CALL,
    NO_VSOCK(359),
    NO_CALL(102, ENOSYS), /* socketcall */
    ALLOW,
#endif
    REFUSE(ENOSYS),
};

static struct sock_filter confine_namespaces[] = {
    LOAD(arch),
    IF_EQUAL(OWN_ARCHITECTURE, 17),
    LOAD_CALL,
    NO_FLAGS(__NR_clone, NAMESPACES),
    NO_FLAGS(__NR_unshare, NAMESPACES | TIME_NAMESPACE),
    NO_CALL(__NR_clone3, ENOSYS),
    NO_CALL(__NR_setns, EPERM),
    ALLOW,
#if defined(__x86_64__)
    IF_EQUAL(AUDIT_ARCH_I386, 17),
    LOAD_CALL,
    NO_FLAGS(120, NAMESPACES),
    NO_FLAGS(310, NAMESPACES | TIME_NAMESPACE),
    NO_CALL(435, ENOSYS),
    NO_CALL(346, EPERM),
    ALLOW,
#endif
    REFUSE(ENOSYS),
};

static int confine_by(struct sock_filter *statements, size_t count, struct aq_error *err)
{
    struct sock_fprog filter = { .len = (unsigned short)count, .filter = statements };

    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
        return aq_fail_errno(err, "filter system calls");
    return 0;
}

int confine(bool may_nest, struct aq_error *err)
{
    int r = confine_by(confine_sockets, AQ_COUNT(confine_sockets), err);

    return r < 0 || may_nest ? r
                             : confine_by(confine_namespaces, AQ_COUNT(confine_namespaces), err);
}
