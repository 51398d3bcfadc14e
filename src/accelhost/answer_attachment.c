/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin says that a container needs. */
#include "accelhost/answer_internal.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "aliquot/accelerator.h"

#define VALUE_MAX 65536
#define PROCESSORS_MAX 1000000
#define TIME_WHOLE 1000000
#define PARTS_MAX ACCEL_DEVICES_MAX

static bool answer_attachment_is_path(const char *path)
{
    size_t len = strlen(path);

    return path[0] == '/' && !strstr(path, "/../")
           && (len < 3 || strcmp(path + len - 3, "/..") != 0);
}

static bool answer_attachment_is_word(const char *text, const char *extra)
{
    for (; *text; text++) {
        char c = *text;

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'
              || strchr(extra, c)))
            return false;
    }
    return true;
}

static void answer_attachment_read_path(struct answer_reader *in, int64_t kind, unsigned flags,
                                        struct accel_attachment *to)
{
    const char *target = answer_text(in, "value", PATH_MAX);

    if (!target)
        target = in->name;
    if (!answer_attachment_is_path(in->name) || !answer_attachment_is_path(target))
        answer_reject(in, "name or value", "is not an absolute path without '..'");
    else if (kind == AQ_ACCELERATOR_NODE)
        arena_append(in->arena, &to->devices, &to->device_count,
                     &(struct container_device){ .source = in->name,
                                                 .target = target,
                                                 .may_read = flags & AQ_ACCELERATOR_READ,
                                                 .may_write = flags & AQ_ACCELERATOR_WRITE,
                                                 .may_mknod = flags & AQ_ACCELERATOR_MKNOD },
                     sizeof(struct container_device));
    else
        arena_append(in->arena, &to->mounts, &to->mount_count,
                     &(struct container_mount){ in->name, target, flags & AQ_ACCELERATOR_WRITE },
                     sizeof(struct container_mount));
}

static void answer_attachment_read_group(struct answer_reader *in, struct accel_attachment *to)
{
    char *end;
    long number = strtol(in->name, &end, 10);

    if (in->name[0] < '0' || in->name[0] > '9' || *end || number <= 0 || number >= INT32_MAX)
        answer_reject(in, "name", "is not the number of a group");
    else
        arena_append(in->arena, &to->groups, &to->group_count, &(gid_t){ (gid_t)number },
                     sizeof(gid_t));
}

static void answer_attachment_read_need(struct answer_reader *in, struct accel_attachment *to)
{
    int64_t kind = answer_int(in, "kind", AQ_ACCELERATOR_NODE, AQ_ACCELERATOR_GROUP);
    unsigned flags = (unsigned)answer_int(in, "flags", 0, 7);
    struct text_pair pair;

    in->name = "";
    in->name = answer_need_text(in, "name", PATH_MAX);
    if (in->r < 0)
        return;
    switch (kind) {
    case AQ_ACCELERATOR_NODE:
    case AQ_ACCELERATOR_MOUNT:
        answer_attachment_read_path(in, kind, flags, to);
        return;
    case AQ_ACCELERATOR_CDI:
        if (!answer_attachment_is_word(in->name, "./=-:"))
            answer_reject(in, "name", "is no CDI device");
        arena_append(in->arena, &to->cdi, &to->cdi_count, &in->name, sizeof(in->name));
        return;
    case AQ_ACCELERATOR_GROUP:
        answer_attachment_read_group(in, to);
        return;
    default:
        break;
    }
    pair = (struct text_pair){ in->name, answer_text(in, "value", VALUE_MAX) };
    if (!pair.value)
        pair.value = "";
    if (!answer_attachment_is_word(in->name, ""))
        answer_reject(in, "name", "is not of letters, digits and '_'");
    else if (kind == AQ_ACCELERATOR_ENVIRON)
        arena_append(in->arena, &to->environ, &to->environ_count, &pair, sizeof(pair));
    else
        arena_append(in->arena, &to->pairs, &to->pair_count, &pair, sizeof(pair));
}

static void answer_attachment_read_part(struct answer_reader *in, const char *kind,
                                        struct accel_attachment *to)
{
    struct accel_part part = { .kind = kind };

    in->name = "";
    in->name = part.device_id = answer_need_text(in, "device", DEVICE_ID_MAX);
    part.model = answer_text(in, "model", ANSWER_TEXT_MAX);
    part.memory_bytes = (uint64_t)answer_int(in, "memory_bytes", 0, INT64_MAX);
    part.processors = (uint32_t)answer_int(in, "processors", 0, PROCESSORS_MAX);
    part.time_micro = (uint32_t)answer_int(in, "time", 0, TIME_WHOLE);
    arena_append(in->arena, &to->parts, &to->part_count, &part, sizeof(part));
}

int answer_read_attachment(const json_t *result, const char *kind, struct accel_attachment *to,
                           struct aq_error *err)
{
    struct answer_reader in = {
        .what = "what it needs", .name = "", .arena = &to->arena, .err = err
    };
    const json_t *needs, *parts;
    size_t need_count = answer_list(&in, result, "needs", ACCEL_NEEDS_MAX, &needs);
    size_t part_count = answer_list(&in, result, "parts", PARTS_MAX, &parts);

    kind = arena_strdup(&to->arena, kind);
    for (size_t i = 0; in.r == 0 && i < need_count; i++) {
        in.from = json_array_get(needs, i);
        answer_attachment_read_need(&in, to);
    }
    for (size_t i = 0; in.r == 0 && i < part_count; i++) {
        in.from = json_array_get(parts, i);
        answer_attachment_read_part(&in, kind, to);
    }
    return in.r;
}
