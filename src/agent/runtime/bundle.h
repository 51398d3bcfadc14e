/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.h - writes config.json of an OCI bundle
 *
 * Open Container Initiative Runtime Specification 1.0, config.md and
 * config-linux.md. The same text serves crun and runc.
 */
#ifndef AQ_AGENT_RUNTIME_BUNDLE_H
#define AQ_AGENT_RUNTIME_BUNDLE_H

#include "agent/runtime/container.h"
#include "agent/runtime/runtime.h"
#include "base/arena.h"

/* Where the monitor puts things (monitor/rootfs.h), and what the node has. */
struct bundle_host {
    const char *stage;
    const char *seccomp;  /* JSON of "linux.seccomp" */
    const char *filter;   /* the same for an annotation (seccomp_filter.h); NULL = none */
    const char *cgroup;   /* path for the runtime to make; NULL = the runtime is in it already */
    uint64_t memlock_max; /* bytes; memory has a limit of its own */
    uint32_t id_base, id_count; /* count 0 = no user namespace */
};

/* Device nodes that every program may use, and those of the container, as
 * rules of the devices cgroup ("c 1:3 rwm"). NULL-terminated, in the arena;
 * NULL with 'err' if one is not there.
 */
const char *const *bundle_device_rules(const struct container_spec *container, struct arena *arena,
                                       struct aq_error *err);

/* NULL-terminated names ("CAP_CHOWN") of what the root of a container may do. */
extern const char *const bundle_capabilities[];

/* Append the text of config.json. argv, envp and cwd are of 'spec'. */
void bundle_write(const struct runtime_spec *spec, const struct container_spec *container,
                  const struct bundle_host *host, const char *const *device_rules,
                  struct strbuf *out);

#endif
