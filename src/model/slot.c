/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of resources, exact. */
#include "model/slot.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"

#define NAMES_MAX 4096
#define TABLE_SIZE (2 * NAMES_MAX)

/* Names are never removed, so a reader needs no lock: it sees a place of the
 * table empty or filled for good. Writers take turns.
 */
static _Atomic(const char *) table[TABLE_SIZE];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t name_count;

/* Length of the part at the front made of lower-case letters, digits and
 * 'more'. Upper case is no part of a name: resource.txt shows names in upper
 * case and is read back.
 */
static size_t slot_name_part_len(const char *text, size_t len, const char *more)
{
    size_t n = 0;

    while (n < len
           && ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= '0' && text[n] <= '9')
               || (text[n] && strchr(more, text[n]))))
        n++;
    return n;
}

/* device[.major[:minor]], each part beginning with a letter or digit */
bool slot_name_is_valid(const char *name, size_t len)
{
    static const struct {
        const char *more;
        char next;
    } parts[] = { { "_-", '.' }, { "_-", ':' }, { "_-.", '\0' } };

    if (len > SLOT_NAME_MAX)
        return false;
    for (size_t i = 0; i < AQ_COUNT(parts); i++) {
        size_t n = slot_name_part_len(name, len, parts[i].more);

        if (n == 0 || slot_name_part_len(name, 1, "") == 0)
            return false;
        if (n == len)
            return true;
        if (name[n] != parts[i].next)
            return false;
        name += n + 1;
        len -= n + 1;
    }
    return false;
}

/* The name, or NULL with *ret_at = the place where it belongs. */
static const char *slot_table_find(const char *name, size_t len, size_t *ret_at)
{
    size_t at = aq_hash(name, len) % TABLE_SIZE;
    const char *found;

    while ((found = atomic_load_explicit(&table[at], memory_order_acquire))) {
        if (strncmp(found, name, len) == 0 && found[len] == '\0')
            return found;
        at = (at + 1) % TABLE_SIZE;
    }
    *ret_at = at;
    return NULL;
}

const char *slot_name_find(const char *name, size_t len)
{
    size_t at;

    return len && len <= SLOT_NAME_MAX ? slot_table_find(name, len, &at) : NULL;
}

const char *slot_name_intern(const char *name, size_t len)
{
    const char *found = slot_name_find(name, len);
    size_t at;

    if (found || !slot_name_is_valid(name, len))
        return found;
    pthread_mutex_lock(&table_lock);
    found = slot_table_find(name, len, &at);
    if (!found && name_count < NAMES_MAX) {
        found = aq_strndup(name, len);
        name_count++;
        atomic_store_explicit(&table[at], found, memory_order_release);
    }
    pthread_mutex_unlock(&table_lock);
    return found;
}

size_t slot_name_device_len(const char *name)
{
    return strcspn(name, ".");
}

bool slot_name_is_accelerator(const char *name)
{
    static const char *const majors[] = { "device", "devices", "share", "shares" };
    const char *major = strchr(name, '.');

    for (size_t i = 0; major && i < AQ_COUNT(majors); i++)
        if (strcspn(major + 1, ":") == strlen(majors[i])
            && memcmp(major + 1, majors[i], strlen(majors[i])) == 0)
            return true;
    return false;
}

/* Names are interned, but a caller that passes "cpu" need not know that. */
static int slot_name_compare(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a, b);
}

/* Index of the first item not before 'name'; sets hold a handful of items. */
static size_t slot_lower_bound(const struct slots *s, const char *name)
{
    size_t i = 0;

    while (i < s->count && slot_name_compare(s->items[i].name, name) < 0)
        i++;
    return i;
}

void slots_done(struct slots *s)
{
    free(s->items);
    *s = (struct slots){ 0 };
}

void slots_copy(struct slots *ret, const struct slots *s)
{
    if (ret == s)
        return;
    vec_grow(&ret->items, &ret->cap, s->count, sizeof(*ret->items));
    if (s->count)
        memcpy(ret->items, s->items, s->count * sizeof(*s->items));
    ret->count = s->count;
}

bool slots_has(const struct slots *s, const char *name)
{
    size_t i = slot_lower_bound(s, name);

    return i < s->count && slot_name_compare(s->items[i].name, name) == 0;
}

int64_t slots_get(const struct slots *s, const char *name)
{
    size_t i = slot_lower_bound(s, name);

    return i < s->count && slot_name_compare(s->items[i].name, name) == 0 ? s->items[i].amount : 0;
}

void slots_put(struct slots *s, const char *interned, int64_t amount)
{
    size_t i = slot_lower_bound(s, interned);

    if (i < s->count && slot_name_compare(s->items[i].name, interned) == 0) {
        s->items[i].amount = amount;
        return;
    }
    vec_grow(&s->items, &s->cap, s->count + 1, sizeof(*s->items));
    memmove(&s->items[i + 1], &s->items[i], (s->count - i) * sizeof(*s->items));
    s->items[i] = (struct slot){ interned, amount };
    s->count++;
}

int slots_set(struct slots *s, const char *name, int64_t amount)
{
    const char *interned = slot_name_intern(name, strlen(name));

    if (!interned)
        return -EINVAL;
    slots_put(s, interned, amount);
    return 0;
}

static bool slot_amount_add(int64_t a, int64_t b, int64_t *ret)
{
    if (a == AMOUNT_INFINITE || b == AMOUNT_INFINITE) {
        *ret = AMOUNT_INFINITE;
        return true;
    }
    return !__builtin_add_overflow(a, b, ret) && *ret != AMOUNT_INFINITE;
}

/* Infinite less anything is infinite; finite less infinite is no amount. */
static bool slot_amount_sub(int64_t a, int64_t b, int64_t *ret)
{
    if (a == AMOUNT_INFINITE) {
        *ret = AMOUNT_INFINITE;
        return true;
    }
    return b != AMOUNT_INFINITE && !__builtin_sub_overflow(a, b, ret) && *ret != AMOUNT_INFINITE;
}

/* a = a op b. The first pass only checks and counts, so that a refusal leaves
 * 'a' as it was; the second merges from the back, in place.
 */
static int slot_combine(struct slots *a, const struct slots *b,
                        bool (*op)(int64_t, int64_t, int64_t *))
{
    size_t missing = 0, i = 0, j, to;
    int64_t unused;

    for (j = 0; j < b->count; j++) {
        while (i < a->count && slot_name_compare(a->items[i].name, b->items[j].name) < 0)
            i++;
        bool common = i < a->count && slot_name_compare(a->items[i].name, b->items[j].name) == 0;

        if (!op(common ? a->items[i].amount : 0, b->items[j].amount, &unused))
            return -EOVERFLOW;
        missing += !common;
    }
    vec_grow(&a->items, &a->cap, a->count + missing, sizeof(*a->items));
    i = a->count;
    to = a->count += missing;
    for (j = b->count; j > 0; j--) {
        const struct slot *item = &b->items[j - 1];

        while (i > 0 && slot_name_compare(a->items[i - 1].name, item->name) > 0)
            a->items[--to] = a->items[--i];
        a->items[--to] = i > 0 && slot_name_compare(a->items[i - 1].name, item->name) == 0
                             ? a->items[--i]
                             : (struct slot){ item->name, 0 };
        (void)op(a->items[to].amount, item->amount, &a->items[to].amount);
    }
    return 0;
}

int slots_add(struct slots *a, const struct slots *b)
{
    return slot_combine(a, b, slot_amount_add);
}

int slots_sub(struct slots *a, const struct slots *b)
{
    return slot_combine(a, b, slot_amount_sub);
}

bool slots_le(const struct slots *a, const struct slots *b)
{
    size_t i = 0, j = 0;

    while (i < a->count || j < b->count) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : slot_name_compare(a->items[i].name, b->items[j].name);
        int64_t left = order <= 0 ? a->items[i++].amount : 0;
        int64_t right = order >= 0 ? b->items[j++].amount : 0;

        if (left > right)
            return false;
    }
    return true;
}

bool slots_eq(const struct slots *a, const struct slots *b)
{
    return slots_le(a, b) && slots_le(b, a);
}
