/* SPDX-License-Identifier: Apache-2.0 */
/* wire_copy.c - copies of structs by the tables of their members */
#include "model/wire_copy.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "model/folder_mount.h"

/* A block that is filled, or only measured: then 'at' is NULL. */
struct wire_copy_block {
    char *at;
    size_t used;
};

static void *wire_copy_take(struct wire_copy_block *block, const void *from, size_t size,
                            size_t align)
{
    void *place;

    if (size == 0)
        return NULL;
    block->used = (block->used + align - 1) / align * align;
    place = block->at ? memcpy(block->at + block->used, from, size) : NULL;
    block->used += size;
    return place;
}

static const char *wire_copy_take_text(struct wire_copy_block *block, const char *text)
{
    return text ? wire_copy_take(block, text, strlen(text) + 1, 1) : NULL;
}

static void wire_copy_mounts(struct wire_copy_block *block, const struct folder_mounts *from,
                             struct folder_mounts *to)
{
    to->items = wire_copy_take(block, from->items, from->count * sizeof(*from->items),
                               alignof(struct folder_mount));
    for (size_t i = 0; i < from->count; i++) {
        struct folder_mount mount = from->items[i];

        mount.name = wire_copy_take_text(block, mount.name);
        mount.host = wire_copy_take_text(block, mount.host);
        mount.path = wire_copy_take_text(block, mount.path);
        mount.target = wire_copy_take_text(block, mount.target);
        if (block->at)
            to->items[i] = mount;
    }
}

/* The member, which is a flat copy, gets its own of what it leads to. */
static void wire_copy_value(struct wire_copy_block *block, enum wire_kind kind,
                            union wire_place from, union wire_place to)
{
    switch (kind) {
    case WIRE_TEXT:
    case WIRE_AMOUNT:
    case WIRE_JSON:
        *to.text = wire_copy_take_text(block, *from.text);
        return;
    case WIRE_TEXTS:
        to.texts->items = wire_copy_take(block, from.texts->items,
                                         from.texts->count * sizeof(*from.texts->items),
                                         alignof(const char *));
        for (size_t i = 0; i < from.texts->count; i++) {
            const char *text = wire_copy_take_text(block, from.texts->items[i]);

            if (block->at)
                to.texts->items[i] = text;
        }
        return;
    case WIRE_NUMBERS:
        to.numbers->items = wire_copy_take(block, from.numbers->items,
                                           from.numbers->count * sizeof(*from.numbers->items),
                                           alignof(int64_t));
        return;
    case WIRE_PAIRS:
        to.pairs->items = wire_copy_take(block, from.pairs->items,
                                         from.pairs->count * sizeof(*from.pairs->items),
                                         alignof(struct text_pair));
        for (size_t i = 0; i < from.pairs->count; i++) {
            struct text_pair pair = { .key = wire_copy_take_text(block, from.pairs->items[i].key) };

            pair.value = wire_copy_take_text(block, from.pairs->items[i].value);
            if (block->at)
                to.pairs->items[i] = pair;
        }
        return;
    case WIRE_MOUNTS:
        wire_copy_mounts(block, from.mounts, to.mounts);
        return;
    default:
        return;
    }
}

/* 'to' is the copy, or NULL while the block is measured. */
static void wire_copy_fields(struct wire_copy_block *block, const struct wire_field *fields,
                             const void *from, void *to)
{
    for (const struct wire_field *field = fields; field->kind != WIRE_END; field++) {
        union wire_place at = wire_place(from, field);
        struct folder_mounts unused; /* the largest member that leads to something */
        union wire_place place = { .any = &unused };

        if (to)
            place = wire_place(to, field);
        if (field->kind == WIRE_BESIDE)
            wire_copy_fields(block, field->of->fields, at.any, to ? place.any : NULL);
        else
            wire_copy_value(block, field->kind, at, place);
    }
}

static void wire_copy_fill(struct wire_copy_block *block, const struct wire_field *fields,
                           const void *from, size_t size)
{
    void *to = wire_copy_take(block, from, size, alignof(max_align_t));

    wire_copy_fields(block, fields, from, to);
}

size_t wire_copy_size(const struct wire_field *fields, const void *from, size_t size)
{
    struct wire_copy_block block = { .at = NULL };

    wire_copy_fill(&block, fields, from, size);
    return block.used;
}

void *wire_copy(const struct wire_field *fields, const void *from, size_t size)
{
    struct wire_copy_block block = { .at = aq_alloc(wire_copy_size(fields, from, size)) };

    wire_copy_fill(&block, fields, from, size);
    return block.at;
}
