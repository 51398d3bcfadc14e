/* SPDX-License-Identifier: Apache-2.0 */
/* grant.c - which devices a kernel got, and how much of each */
#include "alloc/grant.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/json_load.h"
#include "base/vec.h"

void alloc_grant_done(struct alloc_grant *grant)
{
    free(grant->items);
    *grant = (struct alloc_grant){ 0 };
}

bool device_id_is_valid(const char *id, size_t len)
{
    static const char marks[] = "._/+@-";

    if (len == 0 || len > DEVICE_ID_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = id[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || (c && strchr(marks, c))))
            return false;
    }
    return true;
}

int alloc_grant_add(struct alloc_grant *grant, const char *slot_name, enum slot_type type,
                    const char *device_id, size_t id_len, int64_t amount, struct aq_error *err)
{
    struct grant_item *item;

    if (!device_id_is_valid(device_id, id_len))
        return aq_fail_field(err, EINVAL, slot_name,
                             "%s: '%.*s' is not a device id: 1 to %d of A-Za-z0-9._/+@-", slot_name,
                             (int)AQ_MIN(id_len, (size_t)DEVICE_ID_MAX), device_id, DEVICE_ID_MAX);
    vec_grow(&grant->items, &grant->cap, grant->count + 1, sizeof(*grant->items));
    item = &grant->items[grant->count++];
    *item = (struct grant_item){ .slot_name = slot_name, .type = type, .amount = amount };
    memcpy(item->device_id, device_id, id_len);
    return 0;
}

void alloc_grant_copy(struct alloc_grant *ret, const struct alloc_grant *grant)
{
    if (ret == grant)
        return;
    vec_grow(&ret->items, &ret->cap, grant->count, sizeof(*ret->items));
    if (grant->count)
        memcpy(ret->items, grant->items, grant->count * sizeof(*grant->items));
    ret->count = grant->count;
}

static int64_t grant_amount_of(const struct alloc_grant *grant, const struct grant_item *like)
{
    int64_t sum = 0;

    for (size_t i = 0; i < grant->count; i++)
        if (strcmp(grant->items[i].slot_name, like->slot_name) == 0
            && strcmp(grant->items[i].device_id, like->device_id) == 0)
            sum += grant->items[i].amount;
    return sum;
}

void alloc_grant_excess(const struct alloc_grant *a, const struct alloc_grant *b,
                        struct alloc_grant *ret)
{
    alloc_grant_copy(ret, a);
    ret->count = 0;
    for (size_t i = 0; i < a->count; i++) {
        int64_t more = a->items[i].amount - grant_amount_of(b, &a->items[i]);

        ret->items[ret->count] = a->items[i];
        ret->items[ret->count].amount = more;
        ret->count += more > 0;
    }
}

int alloc_grant_sum(const struct alloc_grant *grant, struct slots *ret)
{
    AQ_CLEANUP(slots_donep) struct slots sum = { 0 };
    int r;

    for (size_t i = 0; i < grant->count; i++) {
        struct slot one = { grant->items[i].slot_name, grant->items[i].amount };

        r = slots_add(&sum, &(struct slots){ .items = &one, .count = 1 });
        if (r < 0)
            return r;
    }
    slots_done(ret);
    *ret = sum;
    sum = (struct slots){ 0 };
    return 0;
}

/* "share" or "shares" without a minor part */
static bool grant_is_share(const char *slot_name)
{
    const char *major = strchr(slot_name, '.');

    return major && (strcmp(major, ".share") == 0 || strcmp(major, ".shares") == 0);
}

static void grant_read_item(struct alloc_grant *grant, const char *slot_name, enum slot_type type,
                            const char *device_id, const char *amount_text)
{
    int64_t amount;

    if (!amount_text
        || slot_amount_parse(amount_text, strlen(amount_text), type, false, slot_name, &amount,
                             NULL)
               < 0)
        return; /* of a later version: we cannot interpret it */
    (void)alloc_grant_add(grant, slot_name, type, device_id, strlen(device_id), amount, NULL);
}

void alloc_grant_read_json(struct alloc_grant *grant, const char *text,
                           const struct slot_types *types)
{
    json_t *all = json_load_string(text, JSON_REJECT_DUPLICATES), *devices, *amount;
    const char *slot, *device;

    json_object_foreach(all, slot, devices) {
        /* only an offer makes a name known */
        const char *slot_name = slot_name_find(slot, strlen(slot));

        json_object_foreach(devices, device, amount)
            if (slot_name)
                grant_read_item(grant, slot_name, slot_types_get(types, slot_name), device,
                                json_string_value(amount));
    }
    json_decref(all);
}

char *grant_amount_format(const char *slot_name, enum slot_type type, int64_t amount,
                          char buf[AMOUNT_TEXT_MAX])
{
    size_t len, decimals;
    char *point;

    slot_amount_short(amount, type, buf);
    if (type == SLOT_BYTES || amount == AMOUNT_INFINITE)
        return buf;
    len = strlen(buf);
    point = strchr(buf, '.');
    if (!point && grant_is_share(slot_name))
        buf[len++] = '.';
    if (point || grant_is_share(slot_name)) {
        decimals = point ? strlen(point + 1) : 0;
        for (; decimals < 2; decimals++)
            buf[len++] = '0';
        buf[len] = '\0';
    }
    return buf;
}

void alloc_grant_write_json(const struct alloc_grant *grant, struct jsonw *w)
{
    char text[AMOUNT_TEXT_MAX];

    jsonw_object_begin(w);
    for (size_t i = 0; i < grant->count; i++) {
        const struct grant_item *item = &grant->items[i];

        if (i == 0 || item->slot_name != item[-1].slot_name) {
            if (i > 0)
                jsonw_object_end(w);
            jsonw_key(w, item->slot_name);
            jsonw_object_begin(w);
        }
        if (item->type == SLOT_BYTES)
            slot_amount_format(item->amount, item->type, text);
        else
            grant_amount_format(item->slot_name, item->type, item->amount, text);
        jsonw_member_str(w, item->device_id, text);
    }
    if (grant->count)
        jsonw_object_end(w);
    jsonw_object_end(w);
}
