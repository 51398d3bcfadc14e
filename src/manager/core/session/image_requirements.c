/* SPDX-License-Identifier: Apache-2.0 */
/* image_requirements.c - see image_requirements.h */
#include "manager/core/session/image_requirements.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "manager/core/images.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/state.h"
#include "model/reference.h"

#define LABEL "ai.backend.resource."
#define IMAGES_MAX 10000

static void image_requirements_needs_free(struct image_requirements *needs)
{
    if (!needs)
        return;
    slots_done(&needs->min);
    slots_done(&needs->max);
    free(needs->accelerators);
    free(needs);
}

/* "min.cpu" = "2" */
static void image_requirements_read_label(const struct core *core, const char *key,
                                          const char *text, struct image_requirements *ret)
{
    struct slots *slots = strncmp(key, "min.", 4) == 0   ? &ret->min
                          : strncmp(key, "max.", 4) == 0 ? &ret->max
                                                         : NULL;
    const char *name = slots ? slot_name_find(key + 4, strlen(key + 4)) : NULL;
    enum slot_type type;
    int64_t amount;

    if (name && text && slot_types_find(core->types, name, &type) == 0
        && slot_amount_parse(text, strlen(text), type, false, name, &amount, NULL) == 0
        && amount > 0)
        slots_put(slots, name, amount);
}

/* What was set, over what the labels say. */
static void image_requirements_overlay(struct slots *needs, const struct slots *set)
{
    for (size_t i = 0; i < set->count; i++)
        slots_put(needs, set->items[i].name, set->items[i].amount);
}

/* The words of a label, e.g. "cuda,rocm"; "" and "*" are any. */
static void image_requirements_read_accelerators(const json_t *labels,
                                                 struct image_requirements *needs)
{
    const char *text = json_string_value(json_object_get(labels, "ai.backend.accelerators"));

    if (text && text[strspn(text, " ,")] && !strchr(text, '*'))
        needs->accelerators = aq_strdup(text);
}

/* NULL if the image wants nothing. */
static struct image_requirements *image_requirements_read_labels(const struct core *core,
                                                                 const char *image,
                                                                 const json_t *labels)
{
    struct image_requirements *needs = aq_alloc(sizeof(*needs));
    const struct image_requirements *set = map_gets(&core->image_limits, image);
    const char *key, *role;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)labels, key, value)
        if (strncmp(key, LABEL, strlen(LABEL)) == 0)
            image_requirements_read_label(core, key + strlen(LABEL), json_string_value(value),
                                          needs);
    image_requirements_read_accelerators(labels, needs);
    role = json_string_value(json_object_get(labels, IMAGE_ROLE));
    needs->is_system = role && strcmp(role, "SYSTEM") == 0;
    if (set) {
        image_requirements_overlay(&needs->min, &set->min);
        image_requirements_overlay(&needs->max, &set->max);
    }
    if (needs->min.count || needs->max.count || needs->accelerators || needs->is_system)
        return needs;
    image_requirements_needs_free(needs);
    return NULL;
}

static void image_requirements_set_needs(struct core *core, const char *image, const json_t *labels)
{
    struct map *known = &core->image_requirements;
    struct image_requirements *old = map_gets(known, image);
    struct image_requirements *needs = image_requirements_read_labels(core, image, labels);

    if (!needs) {
        image_requirements_needs_free(map_removes(known, image));
    } else if (old || known->count < IMAGES_MAX) {
        map_sets(known, image, needs);
        image_requirements_needs_free(old);
    } else {
        image_requirements_needs_free(needs);
    }
}

static void image_requirements_take_name(struct core *core, const char *name, const json_t *labels)
{
    struct reference ref = { .text = NULL };

    if (!name || reference_parse(name, NULL, &ref, NULL) < 0)
        return;
    image_requirements_set_needs(core, ref.text, labels);
    reference_done(&ref);
}

void image_requirements_take(struct core *core, const char *images)
{
    json_t *list = json_load_string(images, 0), *image, *name;
    size_t i, n;

    json_array_foreach(list, i, image)
        json_array_foreach(json_object_get(image, "names"), n, name)
            image_requirements_take_name(core, json_string_value(name),
                                         json_object_get(image, "labels"));
    json_decref(list);
}

const struct image_requirements *image_requirements_find(const struct core *core, const char *image)
{
    struct reference ref = { .text = NULL };
    const struct image_requirements *needs;

    if (core->image_requirements.count == 0 || !image
        || reference_parse(image, NULL, &ref, NULL) < 0) /* an alias, or checked elsewhere */
        return NULL;
    needs = map_gets(&core->image_requirements, ref.text);
    reference_done(&ref);
    return needs;
}

/* The part of a slot's name before its first dot is one of the words. */
static bool image_requirements_has_word(const char *words, const char *slot)
{
    size_t len = strcspn(slot, ".");

    for (; *(words += strspn(words, " ,")); words += strcspn(words, " ,"))
        if (strcspn(words, " ,") == len && strncmp(words, slot, len) == 0)
            return true;
    return false;
}

int image_requirements_check_slot(const struct image_requirements *needs, const char *slot,
                                  struct aq_error *err)
{
    char field[SLOT_NAME_MAX + 32];

    if (!needs || !needs->accelerators || strcmp(slot, "cpu") == 0 || strcmp(slot, "mem") == 0
        || image_requirements_has_word(needs->accelerators, slot))
        return 0;
    (void)snprintf(field, sizeof(field), "config.resources.%s", slot);
    return aq_fail_field(err, EINVAL, field,
                         "the image is made for other accelerators: %.100s; leave '%s' out, or "
                         "choose another image",
                         needs->accelerators, slot);
}

/* ---- what administrators set ---- */

void core_set_image_limits(struct core *core, const char *image, const struct slots *min,
                           const struct slots *max)
{
    image_requirements_needs_free(map_removes(&core->image_limits, image));
    if (min->count || max->count) {
        struct image_requirements *set = aq_alloc(sizeof(*set));

        slots_copy(&set->min, min);
        slots_copy(&set->max, max);
        map_sets(&core->image_limits, image, set);
    }
    image_requirements_set_needs(core, image, NULL);
    for (size_t i = 0; i < core->agent_count; i++) /* what its labels say, again */
        if (core->agents_sorted[i]->images)
            image_requirements_take(core, core->agents_sorted[i]->images);
}

void image_requirements_free(struct core *core)
{
    for (size_t i = 0; i < core->image_limits.count; i++)
        image_requirements_needs_free(core->image_limits.entries[i].value);
    map_done(&core->image_limits);
    for (size_t i = 0; i < core->image_requirements.count; i++)
        image_requirements_needs_free(core->image_requirements.entries[i].value);
    map_done(&core->image_requirements);
}
