/* SPDX-License-Identifier: Apache-2.0 */
/* device_filter.h - which device nodes the processes of a cgroup may use (cgroup version 2)
 *
 * A program of type BPF_PROG_TYPE_CGROUP_DEVICE made from the list (Linux,
 * include/uapi/linux/bpf.h, struct bpf_cgroup_dev_ctx). Version 1 has
 * devices.allow instead.
 */
#ifndef AQ_MONITOR_DEVICE_FILTER_H
#define AQ_MONITOR_DEVICE_FILTER_H

#include "base/error.h"
#include "monitor/sandbox.h"

#define DEVICE_RULES_MAX 256

/* Let the directory's processes use these devices ("c 1:3 rwm", "b *:* m") and no
 * other. -EINVAL for a rule that is none.
 */
int device_filter_attach(const char *cgroup, const struct texts *rules, struct aq_error *err);

#endif
