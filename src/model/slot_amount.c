/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts as text. All arithmetic is on integers: a decimal is read as a whole
 * part and a fraction of at most 12 digits, which times any scale up to 2^80
 * fits in 128 bits.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "model/slot.h"

__extension__ typedef unsigned __int128 wide;

#define COUNT_DECIMALS 6
#define BYTES_DECIMALS 12

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
