/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_filter.h - compiles a seccomp profile to a BPF filter, once
 *
 * An OCI runtime makes it of config.json's "linux.seccomp" for every container,
 * for which libseccomp needs 15 to 20 ms of processor time: half of what a
 * short container costs. crun takes one that is ready from an annotation.
 */
#ifndef AQ_AGENT_RUNTIME_SECCOMP_FILTER_H
#define AQ_AGENT_RUNTIME_SECCOMP_FILTER_H

#include "base/error.h"
#include "base/strbuf.h"

#define SECCOMP_FILTER_ANNOTATION "run.oci.seccomp_bpf_data"

/* Append the filter (struct sock_filter) of a "linux.seccomp", as crun makes it,
 * in base64. -EINVAL for what it cannot be made of.
 */
int seccomp_filter_make(const char *seccomp, struct strbuf *out, struct aq_error *err);

#endif
