/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of known slot types. A set never changes once it is handed out: a
 * request that holds one sees the same types from its first check to its last,
 * whichever agents join meanwhile.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "model/slot.h"

struct known_type {
    const char *name; /* interned */
    enum slot_type type;
};

struct slot_types {
    atomic_uint refs;
    size_t count;
    struct known_type items[]; /* sorted by name */
};

static struct slot_types *slot_types_alloc(size_t count)
{
    struct slot_types *types = aq_alloc(sizeof(*types) + count * sizeof(types->items[0]));

    atomic_init(&types->refs, 1);
    types->count = count;
    return types;
}

struct slot_types *slot_types_new(void)
{
    struct slot_types *types = slot_types_alloc(2);

    types->items[0] = (struct known_type){ slot_name_intern("cpu", 3), SLOT_COUNT };
    types->items[1] = (struct known_type){ slot_name_intern("mem", 3), SLOT_BYTES };
    return types;
}

struct slot_types *slot_types_ref(struct slot_types *types)
{
    atomic_fetch_add_explicit(&types->refs, 1, memory_order_relaxed);
    return types;
}

void slot_types_unref(struct slot_types *types)
{
    if (types && atomic_fetch_sub_explicit(&types->refs, 1, memory_order_acq_rel) == 1)
        free(types);
}

/* Index of the first type whose name is not before 'name'. */
static size_t slot_types_lower_bound(const struct slot_types *types, const char *name)
{
    size_t low = 0, high = types->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(types->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct known_type *slot_types_find_item(const struct slot_types *types,
                                                     const char *name)
{
    size_t i = slot_types_lower_bound(types, name);

    return i < types->count && strcmp(types->items[i].name, name) == 0 ? &types->items[i] : NULL;
}

struct slot_types *slot_types_merge(struct slot_types *types, const char *name, enum slot_type type,
                                    struct aq_error *err)
{
    const struct known_type *known = slot_types_find_item(types, name);
    struct slot_types *merged;
    size_t at;

    if (known) {
        if (known->type == type)
            return slot_types_ref(types);
        (void)aq_fail_field(err, EEXIST, name,
                            "slot '%s' is known as %s and cannot become %s; rename it in the"
                            " configuration of the accelerator plugin",
                            name, slot_type_name(known->type), slot_type_name(type));
        return NULL;
    }
    if (!(name = slot_name_intern(name, strlen(name)))) {
        (void)aq_fail(err, EINVAL, "a slot type's name must have the form device.major:minor");
        return NULL;
    }
    merged = slot_types_alloc(types->count + 1);
    at = slot_types_lower_bound(types, name);
    memcpy(merged->items, types->items, at * sizeof(types->items[0]));
    merged->items[at] = (struct known_type){ name, type };
    memcpy(&merged->items[at + 1], &types->items[at],
           (types->count - at) * sizeof(types->items[0]));
    return merged;
}

int slot_types_find(const struct slot_types *types, const char *name, enum slot_type *ret)
{
    const struct known_type *known = slot_types_find_item(types, name);

    if (!known)
        return -ENOENT;
    *ret = known->type;
    return 0;
}

size_t slot_types_count(const struct slot_types *types)
{
    return types->count;
}

const char *slot_types_name(const struct slot_types *types, size_t i, enum slot_type *ret_type)
{
    if (ret_type)
        *ret_type = types->items[i].type;
    return types->items[i].name;
}

enum slot_type slot_type_guess(const char *name)
{
    return strstr(name, "mem") ? SLOT_BYTES : SLOT_COUNT;
}

enum slot_type slot_types_get(const struct slot_types *types, const char *name)
{
    const struct known_type *known = types ? slot_types_find_item(types, name) : NULL;

    return known ? known->type : slot_type_guess(name);
}

static const char *const type_names[] = {
    [SLOT_COUNT] = "count",
    [SLOT_BYTES] = "bytes",
    [SLOT_UNIQUE] = "unique",
    [SLOT_UNIFIED] = "unified",
};

const char *slot_type_name(enum slot_type type)
{
    return type_names[type];
}

int slot_type_parse(const char *text, enum slot_type *ret)
{
    for (size_t i = 0; i < AQ_COUNT(type_names); i++) {
        if (strcmp(type_names[i], text) == 0) {
            *ret = (enum slot_type)i;
            return 0;
        }
    }
    return -EINVAL;
}

int slot_fail_unsupported(const char *name, int64_t amount, struct aq_error *err)
{
    char text[AMOUNT_TEXT_MAX];

    return aq_fail_as(err, EINVAL, "unsupported-resource", name,
                      "slot '%s' is not supported here and %s of it was asked for", name,
                      slot_amount_humanize(amount, slot_type_guess(name), text));
}

void slots_from_policy(struct slots *ret, const struct slots *limits, bool unlimited,
                       const struct slot_types *types)
{
    struct slots out = { 0 };

    for (size_t i = 0; i < types->count; i++) {
        const char *name = types->items[i].name;
        bool given = slots_has(limits, name);

        slots_put(&out, name, given ? slots_get(limits, name) : unlimited ? AMOUNT_INFINITE : 0);
    }
    slots_done(ret);
    *ret = out;
}
