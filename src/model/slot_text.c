/* SPDX-License-Identifier: Apache-2.0 */
/* Slot maps as JSON and as text for users. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/suggest.h"
#include "model/slot.h"

#define TEXT_LIMIT 65536

/* "cpu, mem, cuda.shares" */
static void slot_text_list_types(const struct slot_types *types, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < slot_types_count(types) && used < size; i++) {
        int n = snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
                         slot_types_name(types, i, NULL));

        used += n > 0 ? (size_t)n : 0;
    }
}

/* "gpu" is no slot, and one letter from "cpu": the parts of a GPU are meant, or a whole one. */
static bool slot_text_is_gpu(const char *name)
{
    return strncasecmp(name, "gpu", 3) == 0 || strncasecmp(name, "nvidia", 6) == 0;
}

/* Only of what somebody may have meant; of accelerators the first. */
static const char *slot_text_find_near(const char *name, const struct slot_types *types)
{
    struct suggest suggest = suggest_for(name, strlen(name));

    for (size_t i = 0; slot_text_is_gpu(name) && i < slot_types_count(types); i++)
        if (strchr(slot_types_name(types, i, NULL), '.'))
            return slot_types_name(types, i, NULL);
    if (slot_text_is_gpu(name))
        return NULL;
    for (size_t i = 0; i < slot_types_count(types); i++)
        suggest_offer(&suggest, slot_types_name(types, i, NULL));
    return suggest.best;
}

static int slot_text_fail_unknown(const char *name, const struct slot_types *types,
                                  struct aq_error *err)
{
    const char *near;
    char known[160];

    if (!types)
        return aq_fail_field(err, EINVAL, name, "'%.64s' is not a slot name (device.major:minor)",
                             name);
    if (strcmp(name, "shmem") == 0)
        return aq_fail_field(err, EINVAL, name,
                             "shmem is not a slot; give it in resource_opts instead");
    slot_text_list_types(types, known, sizeof(known));
    near = slot_text_find_near(name, types);
    if (!near && slot_text_is_gpu(name))
        return aq_fail_field(err, EINVAL, name,
                             "unknown slot type '%.64s'; GPUs are cuda.shares or cuda.device, "
                             "which no agent offers; known are %s",
                             name, known);
    return aq_fail_field(err, EINVAL, name, "unknown slot type '%.64s'; %s%s%sknown are %s", name,
                         near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", known);
}

/* JSON reals have been rounded to binary already: a user who wrote 0.1 meant the
 * decimal, so it is taken back to at most 6 decimals, if that loses nothing.
 */
static int slot_text_parse_real(double value, enum slot_type type, const char *name, int64_t *ret,
                                struct aq_error *err)
{
    char text[64];

    if (value > 1e15 || value < -1e15)
        return aq_fail_field(err, EINVAL, name, "%s: the number is too large", name);
    (void)snprintf(text, sizeof(text), "%.6f", value);
    if (strtod(text, NULL) != value)
        return aq_fail_field(err, EINVAL, name, "%s: the number has more than 6 decimals", name);
    return slot_amount_parse(text, strlen(text), type, false, name, ret, err);
}

static int slot_text_parse_value(const json_t *value, enum slot_type type, bool may_be_infinite,
                                 const char *name, int64_t *ret, struct aq_error *err)
{
    char text[32];

    if (json_is_string(value))
        return slot_amount_parse(json_string_value(value), json_string_length(value), type,
                                 may_be_infinite, name, ret, err);
    if (json_is_real(value))
        return slot_text_parse_real(json_real_value(value), type, name, ret, err);
    if (!json_is_integer(value))
        return aq_fail_field(err, EINVAL, name, "%s: an amount is a string or a number", name);
    (void)snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return slot_amount_parse(text, strlen(text), type, may_be_infinite, name, ret, err);
}

/* One member of the object into 'out'. */
static int slot_text_parse_member(const char *name, const json_t *value,
                                  const struct slot_types *types, struct slots *out,
                                  struct aq_error *err)
{
    enum slot_type type = slot_types_get(types, name);
    bool known = !types || slot_types_find(types, name, &type) == 0;
    int64_t amount;
    int r;

    if (json_is_null(value))
        return 0;
    r = slot_text_parse_value(value, type, !types, name, &amount, err);
    if (!known && (r < 0 || amount != 0))
        return slot_text_fail_unknown(name, types, err);
    if (r < 0 || !known)
        return r;
    if (slots_set(out, name, amount) < 0)
        return slot_text_fail_unknown(name, NULL, err);
    return 0;
}

int slots_from_json(const json_t *object, const struct slot_types *types, struct slots *ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(slots_donep) struct slots out = { 0 };
    const char *name;
    json_t *value;
    int r;

    if (!json_is_object(object))
        return aq_fail(err, EINVAL, "resource slots must be an object of names and amounts");
    json_object_foreach((json_t *)object, name, value) {
        r = slot_text_parse_member(name, value, types, &out, err);
        if (r < 0)
            return r;
    }
    slots_done(ret);
    *ret = out;
    out = (struct slots){ 0 };
    return 0;
}

int slots_from_text(const char *text, size_t len, const struct slot_types *types, struct slots *ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(json_decrefp) json_t *object = NULL;
    json_error_t where;

    if (len > TEXT_LIMIT)
        return aq_fail(err, EINVAL, "resource slots are longer than %d bytes", TEXT_LIMIT);
    object = json_load_text(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!object)
        return aq_fail(err, EINVAL, "resource slots are not JSON: %s at byte %d", where.text,
                       where.position);
    return slots_from_json(object, types, ret, err);
}

void slots_write_json(const struct slots *s, const struct slot_types *types, struct jsonw *w)
{
    char text[AMOUNT_TEXT_MAX];

    jsonw_object_begin(w);
    for (size_t i = 0; i < s->count; i++) {
        const struct slot *slot = &s->items[i];

        slot_amount_format(slot->amount, slot_types_get(types, slot->name), text);
        jsonw_member_str(w, slot->name, text);
    }
    jsonw_object_end(w);
}

void slots_humanize(const struct slots *s, const struct slot_types *types, struct strbuf *out)
{
    char text[AMOUNT_TEXT_MAX];

    for (size_t i = 0; i < s->count; i++) {
        const struct slot *slot = &s->items[i];

        slot_amount_humanize(slot->amount, slot_types_get(types, slot->name), text);
        strbuf_adds(out, i ? " " : "");
        strbuf_adds(out, slot->name);
        strbuf_addc(out, '=');
        strbuf_adds(out, text);
    }
}
