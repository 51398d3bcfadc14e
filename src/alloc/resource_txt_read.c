/* SPDX-License-Identifier: Apache-2.0 */
/* Reading resource.txt. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc/resource_txt_internal.h"
#include "base/map.h"

#define ITEMS_MAX 65536

struct resource_txt_reader {
    struct resource_txt rt;
    const struct slot_types *types;
    struct map seen;    /* keys */
    struct map devices; /* "slot/device" */
};

struct text {
    const char *at;
    size_t len;
};

static bool text_is(struct text t, const char *word)
{
    return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
}

/* Cut off and return what stands before 'separator'; everything if there is none. */
static struct text text_cut(struct text *t, char separator)
{
    const char *end = t->len ? memchr(t->at, separator, t->len) : NULL;
    struct text head = { t->at, end ? (size_t)(end - t->at) : t->len };

    t->at += head.len + (end ? 1 : 0);
    t->len -= head.len + (end ? 1 : 0);
    return head;
}

static void resource_txt_read_reader_done(struct resource_txt_reader *rd)
{
    resource_txt_done(&rd->rt);
    map_done(&rd->seen);
    map_done(&rd->devices);
}

/* The slots' types: as known, else inferred from the name. */
static int resource_txt_read_slots(struct resource_txt_reader *rd, struct text value,
                                   struct aq_error *err)
{
    AQ_CLEANUP(json_decrefp) json_t *object = json_loadb(value.at, value.len,
                                                         JSON_REJECT_DUPLICATES, NULL);
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = rd->types ? slot_types_ref(
                                                                 (struct slot_types *)rd->types)
                                                                       : slot_types_new();
    enum slot_type unused;
    const char *name;
    json_t *amount;

    if (!object)
        return aq_fail_field(err, EINVAL, "SLOTS", "SLOTS is not JSON");
    json_object_foreach(object, name, amount) {
        struct slot_types *more;

        if (slot_types_find(types, name, &unused) == 0)
            continue;
        more = slot_types_merge(types, name, slot_type_guess(name), err);
        if (!more)
            return aq_fail_field(err, EINVAL, "SLOTS", "SLOTS: '%.64s' is not a slot name", name);
        slot_types_unref(types);
        types = more;
    }
    return slots_from_json(object, types, &rd->rt.slots, err);
}

static int read_mount(struct resource_txt_reader *rd, struct text entry, struct aq_error *err)
{
    struct text source = text_cut(&entry, ':'), target = text_cut(&entry, ':');
    struct arena *arena = &rd->rt.arena;
    struct resource_mount mount;

    if (!resource_path_is_valid(source.at, source.len)
        || !resource_path_is_valid(target.at, target.len) || target.at[0] != '/'
        || (source.at[0] != '/' && memchr(source.at, '/', source.len))
        || !resource_perm_is_valid(entry.at, entry.len))
        return aq_fail_field(err, EINVAL, "MOUNTS",
                             "MOUNTS: an entry is not <volume or absolute path>:<absolute"
                             " path>:<ro, rw or wd>");
    mount.source = arena_strndup(arena, source.at, source.len);
    mount.target = arena_strndup(arena, target.at, target.len);
    mount.perm = arena_strndup(arena, entry.at, entry.len);
    arena_append(arena, &rd->rt.mounts, &rd->rt.mount_count, &mount, sizeof(mount));
    return 0;
}

static int read_unified(struct resource_txt_reader *rd, struct text value, struct aq_error *err)
{
    AQ_CLEANUP(json_decrefp) json_t *list = json_loadb(value.at, value.len, 0, NULL);
    json_t *pair;
    size_t i;
    int r;

    if (!json_is_array(list))
        return aq_fail_field(err, EINVAL, "UNIFIED_DEVICES", "UNIFIED_DEVICES is not a JSON list");
    json_array_foreach(list, i, pair) {
        const char *id = json_string_value(json_array_get(pair, 0));
        const char *slot = json_string_value(json_array_get(pair, 1));
        const char *name = slot ? slot_name_intern(slot, strlen(slot)) : NULL;

        if (json_array_size(pair) != 2 || !id || !name)
            return aq_fail_field(err, EINVAL, "UNIFIED_DEVICES",
                                 "UNIFIED_DEVICES: entry %zu is not [device, slot]", i);
        r = alloc_grant_add(&rd->rt.grant, name, SLOT_UNIFIED, id, strlen(id), 0, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* "CUDA.SHARES" -> "cuda.shares", interned; NULL if it is no slot name */
static const char *resource_txt_read_slot_of_key(struct text upper)
{
    char lower[SLOT_NAME_MAX];

    if (upper.len > sizeof(lower))
        return NULL;
    for (size_t i = 0; i < upper.len; i++) {
        char c = upper.at[i];

        if (c >= 'a' && c <= 'z')
            return NULL;
        lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return slot_name_intern(lower, upper.len);
}

/* -EINVAL if the device was named for that slot already. */
static int resource_txt_read_note_device(struct resource_txt_reader *rd, const char *slot_name,
                                         struct text id, struct aq_error *err)
{
    char key[SLOT_NAME_MAX + 1 + DEVICE_ID_MAX + 1];
    int len = snprintf(key, sizeof(key), "%s/%.*s", slot_name, (int)AQ_MIN(id.len, sizeof(key)),
                       id.at);

    if (len < 0 || (size_t)len >= sizeof(key))
        return 0; /* no device id; alloc_grant_add() says so */
    if (map_get(&rd->devices, key, (size_t)len))
        return aq_fail_field(err, EINVAL, slot_name, "%s: device '%.*s' is there twice", slot_name,
                             (int)id.len, id.at);
    map_set(&rd->devices, key, (size_t)len, rd);
    return 0;
}

static int read_shares(struct resource_txt_reader *rd, struct text key, struct text value,
                       struct aq_error *err)
{
    const char *name = resource_txt_read_slot_of_key(key);
    enum slot_type type;
    int64_t amount;
    int r;

    if (!name)
        return aq_fail_field(err, EINVAL, "_SHARES", "'%.*s_SHARES' does not name a slot",
                             (int)AQ_MIN(key.len, (size_t)64), key.at);
    type = slot_types_get(rd->types, name);
    while (value.len) {
        struct text entry = text_cut(&value, ','), id = text_cut(&entry, ':');

        if (id.len == 0 && entry.len == 0)
            continue;
        if (rd->rt.grant.count >= ITEMS_MAX)
            return aq_fail_field(err, EINVAL, name, "%s: too many devices", name);
        r = slot_amount_parse(entry.at, entry.len, type, false, name, &amount, err);
        if (r == 0)
            r = resource_txt_read_note_device(rd, name, id, err);
        if (r == 0)
            r = alloc_grant_add(&rd->rt.grant, name, type, id.at, id.len, amount, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int resource_txt_read_pair(struct resource_txt_reader *rd, struct text key,
                                  struct text value, struct aq_error *err)
{
    struct arena *arena = &rd->rt.arena;
    struct text_pair pair;

    if (!resource_key_is_valid(key.at, key.len) || !resource_value_is_valid(value.at, value.len))
        return aq_fail(err, EINVAL,
                       "resource.txt: a line's key is no word or its value has a control"
                       " character");
    pair.key = arena_strndup(arena, key.at, key.len);
    pair.value = arena_strndup(arena, value.at, value.len);
    arena_append(arena, &rd->rt.pairs, &rd->rt.pair_count, &pair, sizeof(pair));
    return 0;
}

static int resource_txt_read_line(struct resource_txt_reader *rd, struct text key,
                                  struct text value, struct aq_error *err)
{
    size_t suffix = strlen(RESOURCE_SHARES_SUFFIX);
    int r = 0;

    if (map_get(&rd->seen, key.at, key.len))
        return aq_fail_field(err, EINVAL, "resource.txt", "'%.*s' is there twice",
                             (int)AQ_MIN(key.len, (size_t)64), key.at);
    map_set(&rd->seen, key.at, key.len, rd);
    if (text_is(key, "SCRATCH_SIZE"))
        return slot_amount_parse(value.at, value.len, SLOT_BYTES, false, "SCRATCH_SIZE",
                                 &rd->rt.scratch_bytes, err);
    if (text_is(key, "SLOTS"))
        return resource_txt_read_slots(rd, value, err);
    if (text_is(key, "UNIFIED_DEVICES"))
        return read_unified(rd, value, err);
    if (text_is(key, "CID")) {
        if (!resource_value_is_valid(value.at, value.len))
            return aq_fail_field(err, EINVAL, "CID", "CID has a control character");
        rd->rt.container_id = arena_strndup(&rd->rt.arena, value.at, value.len);
        return 0;
    }
    if (text_is(key, "MOUNTS")) {
        while (value.len && r == 0) {
            struct text entry = text_cut(&value, ',');

            r = entry.len ? read_mount(rd, entry, err) : 0;
        }
        return r;
    }
    if (key.len > suffix && memcmp(key.at + key.len - suffix, RESOURCE_SHARES_SUFFIX, suffix) == 0)
        return read_shares(rd, (struct text){ key.at, key.len - suffix }, value, err);
    return resource_txt_read_pair(rd, key, value, err);
}

static int read_lines(struct resource_txt_reader *rd, struct text rest, struct aq_error *err)
{
    static const char *const mandatory[] = { "SCRATCH_SIZE", "MOUNTS", "SLOTS" };
    int r;

    while (rest.len) {
        struct text line = text_cut(&rest, '\n'), key;

        if (line.len && line.at[line.len - 1] == '\r')
            line.len--;
        if (!line.len || !memchr(line.at, '=', line.len))
            continue; /* not ours */
        key = text_cut(&line, '=');
        r = resource_txt_read_line(rd, key, line, err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < AQ_COUNT(mandatory); i++)
        if (!map_gets(&rd->seen, mandatory[i]))
            return aq_fail_field(err, EINVAL, mandatory[i], "resource.txt has no line %s",
                                 mandatory[i]);
    return 0;
}

int resource_txt_read(const char *text, size_t len, const struct slot_types *types,
                      struct resource_txt *ret, struct aq_error *err)
{
    AQ_CLEANUP(resource_txt_read_reader_done) struct resource_txt_reader rd = { .types = types };
    int r;

    if (len > RESOURCE_TXT_MAX)
        return aq_fail(err, EFBIG, "resource.txt is longer than %d bytes", RESOURCE_TXT_MAX);
    r = read_lines(&rd, (struct text){ text, len }, err);
    if (r < 0)
        return r;
    resource_txt_done(ret);
    *ret = rd.rt;
    rd.rt = (struct resource_txt){ 0 };
    return 0;
}
