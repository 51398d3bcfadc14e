/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts and maps of slots, as text and as JSON. All arithmetic is on integers: a decimal is read
 * as a whole part and a fraction of at most 12 digits, which times any scale up to 2^80 fits in 128
 * bits.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json_load.h"
#include "base/suggest.h"
#include "model/slot.h"

__extension__ typedef unsigned __int128 wide;

#define COUNT_DECIMALS 6
#define BYTES_DECIMALS 12
#define TEXT_LIMIT 65536

static const char scales[] = "kmgtpezy"; /* 2^10, 2^20, ... 2^80 */

struct decimal {
    uint64_t whole;
    uint64_t fraction; /* in 10^-digits */
    unsigned digits;
    bool overflow, too_long;
};

static bool slot_amount_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A group sign stands between two digits. */
static bool slot_amount_is_group_sign(const char *text, size_t len, size_t i)
{
    return text[i] == '_' && i > 0 && i + 1 < len && slot_amount_is_digit(text[i - 1])
           && slot_amount_is_digit(text[i + 1]);
}

/* Read digits[.digits] at the front; zeros at the fraction's end do not count.
 * Returns the number of bytes, 0 if there is no digit.
 */
static size_t slot_amount_read_decimal(const char *text, size_t len, unsigned max_digits,
                                       struct decimal *ret)
{
    struct decimal d = { 0 };
    bool seen = false, point = false;
    unsigned zeros = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        unsigned digit = (unsigned)(text[i] - '0');

        if (slot_amount_is_group_sign(text, len, i))
            continue;
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (!slot_amount_is_digit(text[i]))
            break;
        seen = true;
        if (!point) {
            d.overflow |= __builtin_mul_overflow(d.whole, 10, &d.whole)
                          || __builtin_add_overflow(d.whole, digit, &d.whole);
        } else if (digit == 0) {
            zeros++;
        } else if (d.too_long || d.digits + zeros >= max_digits) {
            d.too_long = true;
        } else {
            for (; zeros > 0; zeros--, d.digits++)
                d.fraction *= 10;
            d.fraction = d.fraction * 10 + digit;
            d.digits++;
        }
    }
    *ret = d;
    return seen ? i : 0;
}

/* floor(d * unit), false if that is not below AMOUNT_INFINITE. */
static bool slot_amount_multiply(const struct decimal *d, wide unit, int64_t *ret)
{
    wide fraction = (wide)d->fraction * unit, value;

    for (unsigned i = 0; i < d->digits; i++)
        fraction /= 10;
    if (d->whole && unit > AMOUNT_INFINITE / d->whole)
        return false;
    value = (wide)d->whole * unit + fraction;
    if (value >= AMOUNT_INFINITE)
        return false;
    *ret = (int64_t)value;
    return true;
}

/* What stands after a number of bytes: -1 if unknown, else the power of 1024. */
static int slot_amount_parse_scale(const char *unit, size_t len)
{
    static const char *const endings[] = { "ibytes", "ibyte", "ib", "bytes", "byte", "b", "" };
    const char *scale;

    for (size_t i = 0; i < AQ_COUNT(endings); i++) {
        size_t ending = strlen(endings[i]);

        if (len < ending || strncasecmp(unit + len - ending, endings[i], ending) != 0)
            continue;
        if (len == ending)
            return endings[i][0] == 'i' ? -1 : 0;
        if (len != ending + 1 || unit[0] == '\0')
            return -1;
        scale = strchr(scales, unit[0] | 0x20);
        return scale ? (int)(scale - scales) + 1 : -1;
    }
    return -1;
}

static bool slot_amount_is_infinity(const char *text, size_t len)
{
    static const char *const words[] = { "inf", "infinite", "infinity" };

    for (size_t i = 0; i < AQ_COUNT(words); i++)
        if (len == strlen(words[i]) && strncasecmp(text, words[i], len) == 0)
            return true;
    return false;
}

static bool slot_amount_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What is wrong with it in words, or NULL. */
static const char *slot_amount_parse_count(const char *text, size_t len, bool whole, int64_t *ret)
{
    struct decimal d;
    size_t used = slot_amount_read_decimal(text, len, COUNT_DECIMALS, &d);

    if (used == 0)
        return "is not a number such as 2 or 0.5";
    if (used != len)
        return "is not a plain decimal number (no unit, no exponent)";
    if (d.too_long)
        return "has more than 6 decimals";
    if (whole && d.fraction)
        return "is a fraction of something that cannot be divided";
    if (d.overflow || !slot_amount_multiply(&d, AMOUNT_ONE, ret))
        return "is too large";
    return NULL;
}

static const char *slot_amount_parse_bytes(const char *text, size_t len, int64_t *ret)
{
    struct decimal d;
    size_t used = slot_amount_read_decimal(text, len, BYTES_DECIMALS, &d);
    int scale;

    if (used == 0)
        return "is not a size such as 512m or 2g";
    while (used < len && slot_amount_is_space(text[used]))
        used++;
    scale = slot_amount_parse_scale(text + used, len - used);
    if (scale < 0)
        return "has no known unit (k, m, g, t, p, e, z, y: powers of 1024; no exponent)";
    if (scale == 0 && (d.fraction || d.too_long))
        return "is a fraction of a byte; say 512m or 2g";
    if (d.too_long)
        return "has more than 12 decimals";
    if (d.overflow || !slot_amount_multiply(&d, (wide)1 << (10 * scale), ret))
        return "is too large";
    return NULL;
}

int slot_amount_parse(const char *text, size_t len, enum slot_type type, bool may_be_infinite,
                      const char *slot_name, int64_t *ret, struct aq_error *err)
{
    const char *whole = text, *wrong;
    size_t whole_len = len;
    int64_t amount = 0;

    while (len && slot_amount_is_space(text[len - 1]))
        len--;
    while (len && slot_amount_is_space(*text)) {
        text++;
        len--;
    }
    if (slot_amount_is_infinity(text, len)) {
        amount = AMOUNT_INFINITE;
        wrong = may_be_infinite ? NULL : "must be finite here: ask for an amount";
    } else if (len && *text == '-') {
        wrong = "cannot be negative";
    } else if (type == SLOT_BYTES) {
        wrong = slot_amount_parse_bytes(text, len, &amount);
    } else {
        wrong = slot_amount_parse_count(text, len, type != SLOT_COUNT, &amount);
    }
    if (wrong)
        return aq_fail_field(err, EINVAL, slot_name, "%s: '%.*s' %s", slot_name,
                             (int)AQ_MIN(whole_len, 60), whole, wrong);
    *ret = amount;
    return 0;
}

/* snprintf() takes longer than all else of a list's row. */
static void slot_amount_format_whole(int64_t value, char buf[AMOUNT_TEXT_MAX])
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[24], *at = digits + sizeof(digits);

    *--at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        *--at = '-';
    memcpy(buf, at, (size_t)(digits + sizeof(digits) - at));
}

/* "123.45" from an amount in 10^-6, zeros at the end dropped. */
static void slot_amount_format_count(int64_t amount, char buf[AMOUNT_TEXT_MAX])
{
    uint64_t rest = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;
    const char *sign = amount < 0 ? "-" : "";
    int n = snprintf(buf, AMOUNT_TEXT_MAX, "%s%" PRIu64 ".%06" PRIu64, sign,
                     rest / (uint64_t)AMOUNT_ONE, rest % (uint64_t)AMOUNT_ONE);

    while (buf[n - 1] == '0')
        n--;
    if (buf[n - 1] == '.')
        n--;
    buf[n] = '\0';
}

char *slot_amount_format(int64_t amount, enum slot_type type, char buf[AMOUNT_TEXT_MAX])
{
    if (amount == AMOUNT_INFINITE)
        (void)snprintf(buf, AMOUNT_TEXT_MAX, "Infinity");
    else if (type == SLOT_BYTES)
        slot_amount_format_whole(amount, buf);
    else if (amount % AMOUNT_ONE == 0)
        slot_amount_format_whole(amount / AMOUNT_ONE, buf);
    else
        slot_amount_format_count(amount, buf);
    return buf;
}

char *slot_amount_short(int64_t amount, enum slot_type type, char buf[AMOUNT_TEXT_MAX])
{
    int64_t value = amount;
    int scale = 0;

    if (type != SLOT_BYTES || amount == AMOUNT_INFINITE)
        return slot_amount_format(amount, type, buf);
    while (value && value % 1024 == 0) {
        value /= 1024;
        scale++;
    }
    (void)snprintf(buf, AMOUNT_TEXT_MAX, "%" PRId64 "%.*s", value, scale ? 1 : 0,
                   scale ? &scales[scale - 1] : "");
    return buf;
}

/* value / 2^(10*scale) in hundredths, half to even */
static uint64_t slot_amount_hundredths(uint64_t value, int scale)
{
    wide scaled = (wide)value * 100, unit = (wide)1 << (10 * scale);
    uint64_t result = (uint64_t)(scaled / unit);
    wide rest = scaled % unit * 2;

    return result + (rest > unit || (rest == unit && result % 2));
}

char *slot_amount_humanize(int64_t amount, enum slot_type type, char buf[AMOUNT_TEXT_MAX])
{
    uint64_t value = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;
    const char *sign = amount < 0 ? "-" : "";
    int scale = 0, n;

    if (type != SLOT_BYTES || amount == AMOUNT_INFINITE)
        return slot_amount_format(amount, type, buf);
    while (scale < 6 && value >> (10 * (scale + 1)))
        scale++;
    if (scale == 0) {
        (void)snprintf(buf, AMOUNT_TEXT_MAX, "%s%" PRIu64 " byte%s", sign, value,
                       value == 1 ? "" : "s");
        return buf;
    }
    value = slot_amount_hundredths(value, scale);
    n = snprintf(buf, AMOUNT_TEXT_MAX, "%s%" PRIu64 ".%02" PRIu64, sign, value / 100, value % 100);
    while (buf[n - 1] == '0')
        n--;
    if (buf[n - 1] == '.')
        n--;
    (void)snprintf(buf + n, AMOUNT_TEXT_MAX - (size_t)n, " %ciB", scales[scale - 1] & ~0x20);
    return buf;
}

/* ---- maps of slots ---- */

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
