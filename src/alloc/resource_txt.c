/* SPDX-License-Identifier: Apache-2.0 */
/* Writing resource.txt. */
#include "alloc/resource_txt_internal.h"

#include <errno.h>
#include <string.h>

void resource_txt_done(struct resource_txt *rt)
{
    slots_done(&rt->slots);
    alloc_grant_done(&rt->grant);
    arena_done(&rt->arena);
    *rt = (struct resource_txt){ 0 };
}

bool resource_path_is_valid(const char *path, size_t len)
{
    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)path[i] < 0x20 || path[i] == ',' || path[i] == ':')
            return false;
    return true;
}

bool resource_perm_is_valid(const char *perm, size_t len)
{
    return len == 2 && (!memcmp(perm, "ro", 2) || !memcmp(perm, "rw", 2) || !memcmp(perm, "wd", 2));
}

bool resource_key_is_valid(const char *key, size_t len)
{
    static const char *const ours[] = { "SCRATCH_SIZE", "MOUNTS", "SLOTS", "UNIFIED_DEVICES",
                                        "CID" };
    size_t suffix = strlen(RESOURCE_SHARES_SUFFIX);

    if (len == 0 || (len >= suffix && !memcmp(key + len - suffix, RESOURCE_SHARES_SUFFIX, suffix)))
        return false;
    for (size_t i = 0; i < AQ_COUNT(ours); i++)
        if (strlen(ours[i]) == len && memcmp(ours[i], key, len) == 0)
            return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)key[i] <= 0x20 || key[i] == '=')
            return false;
    return true;
}

bool resource_value_is_valid(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value[i] < 0x20 && value[i] != '\t')
            return false;
    return true;
}

static int resource_txt_write_mounts(const struct resource_txt *rt, struct strbuf *out,
                                     struct aq_error *err)
{
    strbuf_adds(out, "MOUNTS=");
    for (size_t i = 0; i < rt->mount_count; i++) {
        const struct resource_mount *m = &rt->mounts[i];

        if (!resource_path_is_valid(m->source, strlen(m->source))
            || !resource_path_is_valid(m->target, strlen(m->target)) || m->target[0] != '/'
            || (m->source[0] != '/' && strchr(m->source, '/'))
            || !resource_perm_is_valid(m->perm, strlen(m->perm)))
            return aq_fail_field(err, EINVAL, m->target,
                                 "mount of '%.100s' at '%.100s' (%.8s): a path is absolute and has"
                                 " no ',' or ':', a permission is ro, rw or wd",
                                 m->source, m->target, m->perm);
        strbuf_addf(out, "%s%s:%s:%s", i ? "," : "", m->source, m->target, m->perm);
    }
    strbuf_addc(out, '\n');
    return 0;
}

static void resource_txt_write_unified(const struct alloc_grant *grant, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    strbuf_adds(out, "UNIFIED_DEVICES=");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < grant->count; i++) {
        if (grant->items[i].type != SLOT_UNIFIED)
            continue;
        jsonw_array_begin(&w);
        jsonw_str(&w, grant->items[i].device_id);
        jsonw_str(&w, grant->items[i].slot_name);
        jsonw_array_end(&w);
    }
    jsonw_array_end(&w);
    strbuf_addc(out, '\n');
}

static void resource_txt_write_shares(const struct alloc_grant *grant, struct strbuf *out)
{
    const char *slot_name = NULL; /* of the line that was begun */
    char amount[AMOUNT_TEXT_MAX];

    for (size_t i = 0; i < grant->count; i++) {
        const struct grant_item *item = &grant->items[i];

        if (item->type == SLOT_UNIFIED)
            continue;
        if (item->slot_name != slot_name) {
            if (slot_name)
                strbuf_addc(out, '\n');
            slot_name = item->slot_name;
            for (const char *c = slot_name; *c; c++)
                strbuf_addc(out, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
            strbuf_adds(out, RESOURCE_SHARES_SUFFIX "=");
        } else {
            strbuf_addc(out, ',');
        }
        grant_amount_format(item->slot_name, item->type, item->amount, amount);
        strbuf_addf(out, "%s:%s", item->device_id, amount);
    }
    if (slot_name)
        strbuf_addc(out, '\n');
}

static int resource_txt_write_pairs(const struct resource_txt *rt, struct strbuf *out,
                                    struct aq_error *err)
{
    for (size_t i = 0; i < rt->pair_count; i++) {
        const struct text_pair *pair = &rt->pairs[i];

        if (!resource_key_is_valid(pair->key, strlen(pair->key))
            || !resource_value_is_valid(pair->value, strlen(pair->value)))
            return aq_fail_field(err, EINVAL, pair->key,
                                 "'%.64s' cannot stand in resource.txt: the key is taken or not a"
                                 " word, or the value has a control character",
                                 pair->key);
        strbuf_addf(out, "%s=%s\n", pair->key, pair->value);
    }
    return 0;
}

int resource_txt_write(const struct resource_txt *rt, const struct slot_types *types,
                       struct strbuf *out, struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);
    char scratch[AMOUNT_TEXT_MAX];
    size_t before = out->len;
    int r;

    slot_amount_short(rt->scratch_bytes, SLOT_BYTES, scratch);
    strbuf_addf(out, "SCRATCH_SIZE=%s\n", rt->scratch_bytes ? scratch : "0m");
    r = resource_txt_write_mounts(rt, out, err);
    if (r == 0) {
        strbuf_adds(out, "SLOTS=");
        slots_write_json(&rt->slots, types, &w);
        strbuf_addc(out, '\n');
        resource_txt_write_unified(&rt->grant, out);
        resource_txt_write_shares(&rt->grant, out);
        r = resource_txt_write_pairs(rt, out, err);
    }
    if (r == 0 && rt->container_id
        && !resource_value_is_valid(rt->container_id, strlen(rt->container_id)))
        r = aq_fail_field(err, EINVAL, "CID", "a container's id has no control characters");
    if (r == 0 && rt->container_id)
        strbuf_addf(out, "CID=%s\n", rt->container_id);
    if (r < 0)
        strbuf_truncate(out, before);
    return r;
}
