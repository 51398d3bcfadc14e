/* SPDX-License-Identifier: Apache-2.0 */
/* grant.h - which devices a kernel got, and how much of each
 *
 * Plain data that stands alone: it may outlive the map that made it, be
 * copied, written to a file and read back. Items are grouped by slot in
 * allocation order, within a slot in the order in which the devices were
 * declared.
 */
#ifndef AQ_ALLOC_GRANT_H
#define AQ_ALLOC_GRANT_H

#include "model/slot.h"

/* Longest device id, without the NUL. Ids are of [A-Za-z0-9._/+@-]: no
 * character that separates in resource.txt.
 */
#define DEVICE_ID_MAX 63

struct grant_item {
    const char *slot_name; /* interned */
    enum slot_type type;
    int64_t amount; /* as in model/slot.h; 0 for SLOT_UNIFIED, which is only attached */
    char device_id[DEVICE_ID_MAX + 1];
};

/* Zero-initialise. */
struct alloc_grant {
    struct grant_item *items;
    size_t count, cap;
};

void alloc_grant_done(struct alloc_grant *grant);

static inline void alloc_grant_donep(struct alloc_grant *grant)
{
    alloc_grant_done(grant);
}

bool device_id_is_valid(const char *id, size_t len);

/* Append one item. -EINVAL (field = the slot or device) for a device id that
 * is not valid.
 */
int alloc_grant_add(struct alloc_grant *grant, const char *slot_name, enum slot_type type,
                    const char *device_id, size_t id_len, int64_t amount, struct aq_error *err);

/* *ret is replaced by a copy. */
void alloc_grant_copy(struct alloc_grant *ret, const struct alloc_grant *grant);

/* What 'a' holds more of each device than 'b'. *ret is replaced. */
void alloc_grant_excess(const struct alloc_grant *a, const struct alloc_grant *b,
                        struct alloc_grant *ret);

/* Sum per slot. *ret is replaced. 0 or -EOVERFLOW. */
int alloc_grant_sum(const struct alloc_grant *grant, struct slots *ret) AQ_MUST_CHECK;

/* {"cuda.shares":{"<device>":"0.60",…},"cpu":{"0":"1"}}; amounts as in resource.txt
 * but for bytes, which are integers.
 */
void alloc_grant_write_json(const struct alloc_grant *grant, struct jsonw *w);

/* Append what such text says, as far as it is understood: 'types' has the types of slots, and of a
 * slot that nobody has offered there is none.
 */
void alloc_grant_read_json(struct alloc_grant *grant, const char *text,
                           const struct slot_types *types);

/* The amount of one device as resource.txt shows it: shares and fractions with
 * at least two decimals ("0.60"), other counts plain ("1"), bytes in their
 * short exact form ("2g"). Returns 'buf'.
 */
char *grant_amount_format(const char *slot_name, enum slot_type type, int64_t amount,
                          char buf[AMOUNT_TEXT_MAX]);

#endif
