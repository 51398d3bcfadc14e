/* SPDX-License-Identifier: Apache-2.0 */
/* resource.txt - what a kernel got, in a file inside its container
 *
 * The file /home/config/resource.txt that programs in Backend.AI images read,
 * and that the agent reads back after a restart:
 *
 *     SCRATCH_SIZE=0m
 *     MOUNTS=/data/x:/home/work/x:rw,…
 *     SLOTS={"cpu":"1","mem":"2147483648","cuda.shares":"1.2"}
 *     UNIFIED_DEVICES=[["0","npu.device"],…]
 *     CUDA.SHARES_SHARES=<device>:0.60,<device>:0.60
 *     CPU_SHARES=0:1
 *     MEM_SHARES=root:2g
 *     CUDA_RESOURCE_VIRTUALIZED=1        (any further KEY=value)
 *     CID=<id of the container>
 *
 * Amounts are exact: reading gives the numbers that were written.
 */
#ifndef AQ_ALLOC_RESOURCE_TXT_H
#define AQ_ALLOC_RESOURCE_TXT_H

#include "alloc/grant.h"
#include "base/arena.h"
#include "base/text_pair.h"

#define RESOURCE_TXT_MAX (1024 * 1024)

struct resource_mount {
    const char *source; /* an absolute path, or the name of a volume */
    const char *target; /* an absolute path */
    const char *perm;   /* "ro", "rw" or "wd" */
};

/* To write, fill it in with borrowed members and do not call _done. What is
 * read owns all it points to.
 */
struct resource_txt {
    int64_t scratch_bytes;
    const struct resource_mount *mounts;
    size_t mount_count;
    struct slots slots;
    struct alloc_grant grant; /* SLOT_UNIFIED items are the UNIFIED_DEVICES */
    const struct text_pair *pairs;
    size_t pair_count;
    const char *container_id; /* NULL = in none */
    struct arena arena;
};

void resource_txt_done(struct resource_txt *rt);

static inline void resource_txt_donep(struct resource_txt *rt)
{
    resource_txt_done(rt);
}

/* Append the file to 'out'. -EINVAL with the mount or key as field for one that
 * the file cannot hold (',' or ':' in a path, a control character).
 */
int resource_txt_write(const struct resource_txt *rt, const struct slot_types *types,
                       struct strbuf *out, struct aq_error *err);

/* Read it back; lines in any order. Types not in 'types' (may be NULL) are
 * inferred, so slots of a former configuration are read too. -EINVAL with the
 * key as field; *ret is replaced on success only.
 */
int resource_txt_read(const char *text, size_t len, const struct slot_types *types,
                      struct resource_txt *ret, struct aq_error *err) AQ_UNTRUSTED;

#endif
