/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - the cgroups and limits of one container, for its monitor */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/cgroup/cgroup.h"
#include "model/slot.h"

#define PERIOD_USEC 100000  /* of the share of time; the kernel's own default */
#define QUOTA_MIN_USEC 1000 /* the kernel takes no less */
#define WEIGHT_MAX 10000    /* cpu.weight */

static void cgroup_plan_end(struct strbuf *out)
{
    strbuf_add(out, "", 1);
}

static void cgroup_plan_put_limit(struct strbuf *out, const struct cgroup_hierarchy *h,
                                  const char *name, const char *file, const char *value)
{
    strbuf_addf(out, "limit=%s/%s/%s=%s", h->parent, name, file, value);
    cgroup_plan_end(out);
}

static void cgroup_plan_put_number(struct strbuf *out, const struct cgroup_hierarchy *h,
                                   const char *name, const char *file, int64_t value)
{
    strbuf_addf(out, "limit=%s/%s/%s=%" PRId64, h->parent, name, file, value);
    cgroup_plan_end(out);
}

static bool cgroup_plan_has_file(const struct cgroup_hierarchy *h, const char *file)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", h->parent, file);

    return access(path, F_OK) == 0;
}

static int64_t plan_quota_usec(int64_t cpu_micro)
{
    return AQ_MAX(cpu_micro / AMOUNT_ONE * PERIOD_USEC
                      + cpu_micro % AMOUNT_ONE * PERIOD_USEC / AMOUNT_ONE,
                  QUOTA_MIN_USEC);
}

static void plan_cpu(const struct cgroup_layout *layout, const char *name,
                     const struct cgroup_limits *limits, struct strbuf *out)
{
    const struct cgroup_hierarchy *h = cgroup_find(layout, CGROUP_CPU);
    int64_t quota = plan_quota_usec(limits->cpu_micro);

    if (!h || !h->parent || limits->cpu_micro <= 0)
        return;
    if (!h->is_v2) {
        cgroup_plan_put_number(out, h, name, "cpu.cfs_period_us", PERIOD_USEC);
        cgroup_plan_put_number(out, h, name, "cpu.cfs_quota_us", quota);
        cgroup_plan_put_number(out, h, name, "cpu.shares", AQ_MAX(quota * 1024 / PERIOD_USEC, 2));
        return;
    }
    strbuf_addf(out, "limit=%s/%s/cpu.max=%" PRId64 " %d", h->parent, name, quota, PERIOD_USEC);
    cgroup_plan_end(out);
    cgroup_plan_put_number(out, h, name, "cpu.weight",
                           AQ_MIN(AQ_MAX(quota * 100 / PERIOD_USEC, 1), WEIGHT_MAX));
}

static void plan_memory(const struct cgroup_layout *layout, const char *name, int64_t bytes,
                        struct strbuf *out)
{
    const struct cgroup_hierarchy *h = cgroup_find(layout, CGROUP_MEMORY);

    if (!h || !h->parent || bytes <= 0)
        return;
    /* the second of each: not there where swap is not accounted */
    if (h->is_v2) {
        cgroup_plan_put_number(out, h, name, "memory.max", bytes);
        if (cgroup_plan_has_file(h, "memory.swap.max"))
            cgroup_plan_put_number(out, h, name, "memory.swap.max", 0);
        return;
    }
    cgroup_plan_put_number(out, h, name, "memory.limit_in_bytes", bytes);
    if (cgroup_plan_has_file(h, "memory.memsw.limit_in_bytes")) /* memory and swap together */
        cgroup_plan_put_number(out, h, name, "memory.memsw.limit_in_bytes", bytes);
}

static void plan_devices(const struct cgroup_layout *layout, const char *name,
                         const char *const *devices, struct strbuf *out)
{
    const struct cgroup_hierarchy *h = cgroup_find(layout, CGROUP_DEVICES);

    if (!h || !h->parent || !devices)
        return;
    if (!h->is_v2)
        cgroup_plan_put_limit(out, h, name, "devices.deny", "a");
    for (; *devices; devices++) {
        if (!h->is_v2) {
            cgroup_plan_put_limit(out, h, name, "devices.allow", *devices);
        } else {
            strbuf_addf(out, "device=%s", *devices);
            cgroup_plan_end(out);
        }
    }
}

/* In version 1 a new cpuset has neither cores nor memory nodes: cgroup_prepare()
 * makes it copy those of its parent.
 */
static void plan_cpuset(const struct cgroup_layout *layout, const char *name, const char *cpus,
                        struct strbuf *out)
{
    const struct cgroup_hierarchy *h = cgroup_find(layout, CGROUP_CPUSET);

    if (h && h->parent && cpus)
        cgroup_plan_put_limit(out, h, name, "cpuset.cpus", cpus);
}

void cgroup_plan(const struct cgroup_layout *layout, const char *name,
                 const struct cgroup_limits *limits, struct strbuf *out)
{
    const struct cgroup_hierarchy *pids = cgroup_find(layout, CGROUP_PIDS);

    for (size_t i = 0; i < layout->count; i++) {
        if (!layout->items[i].parent)
            continue;
        strbuf_addf(out, "cgroup=%s/%s", layout->items[i].parent, name);
        cgroup_plan_end(out);
    }
    plan_cpuset(layout, name, limits->cpus, out);
    plan_cpu(layout, name, limits, out);
    plan_memory(layout, name, limits->memory_bytes, out);
    if (pids && pids->parent && limits->pids_max)
        cgroup_plan_put_number(out, pids, name, "pids.max", (int64_t)limits->pids_max);
    plan_devices(layout, name, limits->devices, out);
}

char *cgroup_path(const struct cgroup_layout *layout, const char *name)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct cgroup_hierarchy *h = &layout->items[i];

        if (h->parent)
            return aq_format("%s/%s", h->parent + strlen(h->mount), name);
    }
    return NULL;
}
