/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.h - the node's seccomp profile for containers
 *
 * /usr/share/containers/seccomp.json (containers-common, seccomp.json(5))
 * says for which architectures, capabilities and kernels each rule holds; an
 * OCI runtime wants the rules that do. Ours (seccomp_rules.h) are added to them.
 */
#ifndef AQ_AGENT_RUNTIME_SECCOMP_H
#define AQ_AGENT_RUNTIME_SECCOMP_H

#include <stdbool.h>

#include "base/error.h"
#include "base/strbuf.h"

#define SECCOMP_PROFILE "/usr/share/containers/seccomp.json"
#define SECCOMP_PROFILE_MAX (1u << 20)
/* A profile that allows everything. */
#define SECCOMP_PROFILE_OPEN                                                              \
    "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"archMap\":["                                 \
    "{\"architecture\":\"SCMP_ARCH_X86_64\","                                             \
    "\"subArchitectures\":[\"SCMP_ARCH_X86\",\"SCMP_ARCH_X32\"]},"                        \
    "{\"architecture\":\"SCMP_ARCH_AARCH64\",\"subArchitectures\":[\"SCMP_ARCH_ARM\"]}]," \
    "\"syscalls\":[]}"

struct seccomp_host {
    const char *machine;             /* as in uname(2): "x86_64" */
    const char *release;             /* "6.1.0-18-amd64" */
    const char *const *capabilities; /* NULL-terminated; what containers have */
    bool may_nest;                   /* containers may make namespaces of their own */
};

/* Append the value of "linux.seccomp" of a runtime's config.json. -EINVAL for
 * a profile that is none.
 */
int seccomp_translate(const char *profile, size_t len, const struct seccomp_host *host,
                      struct strbuf *out, struct aq_error *err);

#endif
