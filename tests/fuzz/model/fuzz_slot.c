/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts and slot maps. The first byte chooses the type. */
#include <stdint.h>
#include <string.h>

#include "model/slot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is written in three forms; the exact ones read back the same. */
static void check_amount(int64_t amount, enum slot_type type)
{
    char text[AMOUNT_TEXT_MAX];
    int64_t again;

    slot_amount_format(amount, type, text);
    if (slot_amount_parse(text, strlen(text), type, true, "x", &again, NULL) < 0 || again != amount)
        __builtin_trap();
    slot_amount_short(amount, type, text);
    if (slot_amount_parse(text, strlen(text), type, true, "x", &again, NULL) < 0 || again != amount)
        __builtin_trap();
    slot_amount_humanize(amount, type, text);
}

static void check_slots(const char *text, size_t len, const struct slot_types *types)
{
    AQ_CLEANUP(slots_donep) struct slots s = { 0 };
    AQ_CLEANUP(slots_donep) struct slots back = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };
    struct jsonw w = jsonw_make(&out);

    if (slots_from_text(text, len, types, &s, &err) < 0) {
        if (err.text[0] == '\0')
            __builtin_trap();
        return;
    }
    slots_write_json(&s, types, &w);
    if (slots_from_text(out.data, out.len, types, &back, NULL) < 0 || !slots_eq(&s, &back))
        __builtin_trap();
    slots_humanize(&s, types, &out);
    if (slots_sub(&back, &s) < 0 || slots_add(&back, &s) < 0 || !slots_eq(&back, &s))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = slot_types_new();
    const char *text = (const char *)data + 1;
    enum slot_type type;
    int64_t amount;

    if (size == 0 || !types)
        return 0;
    type = (enum slot_type)(data[0] % 4);
    if (slot_amount_parse(text, size - 1, type, data[0] & 8, "x", &amount, NULL) == 0) {
        if (amount < 0)
            __builtin_trap();
        check_amount(amount, type);
    }
    check_slots(text, size - 1, data[0] & 16 ? types : NULL);
    return 0;
}
