/* SPDX-License-Identifier: Apache-2.0 */
/* tar_reader.c - reading tar as it comes */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "transfer/tar.h"
#include "transfer/tar_header.h"

#define META_MAX 65536 /* bytes of the records before one entry */

enum tar_state { TAR_AT_HEADER, TAR_AT_META, TAR_AT_BYTES, TAR_AT_PADDING, TAR_AT_END };

struct tar_reader {
    struct tar_limits limits;
    const struct tar_reader_ops *ops;
    void *data;
    enum tar_state state;
    char block[TAR_BLOCK];
    size_t block_len;
    unsigned zero_blocks;
    char meta_flag;
    struct strbuf meta;
    struct strbuf name, target;        /* for the next entry; "" = as in its header */
    bool has_size, has_mtime, is_meta; /* of records; is_meta: what is being passed over was */
    uint64_t size;
    int64_t mtime;
    long mtime_nsec;
    uint64_t left; /* bytes of this part still to come */
    size_t padding;
    struct tar_count count;
};

int tar_reader_new(const struct tar_limits *limits, const struct tar_reader_ops *ops, void *data,
                   struct tar_reader **ret, struct aq_error *err)
{
    struct tar_reader *t = calloc(1, sizeof(*t));

    if (!t)
        return aq_fail_oom(err);
    t->limits = *limits;
    t->ops = ops;
    t->data = data;
    strbuf_init(&t->meta);
    strbuf_init(&t->name);
    strbuf_init(&t->target);
    *ret = t;
    return 0;
}

void tar_reader_free(struct tar_reader *t)
{
    if (!t)
        return;
    strbuf_done(&t->meta);
    strbuf_done(&t->name);
    strbuf_done(&t->target);
    free(t);
}

static int tar_reader_fail(struct aq_error *err, const char *why)
{
    return aq_fail_kind(err, EINVAL, "bad-archive", "this is no tar archive that can be read: %s",
                        why);
}

int tar_count_entry(struct tar_count *count, const struct tar_limits *limits, uint64_t bytes,
                    struct aq_error *err)
{
    count->entries++;
    if (limits->entries_max && count->entries > limits->entries_max)
        return aq_fail_kind(err, EFBIG, "transfer-too-large",
                            "more than the %llu files and folders of one transfer",
                            (unsigned long long)limits->entries_max);
    if (__builtin_add_overflow(count->bytes, bytes, &count->bytes)
        || (limits->bytes_max && count->bytes > limits->bytes_max))
        return aq_fail_kind(err, EFBIG, "transfer-too-large",
                            "more than the %llu bytes of one transfer",
                            (unsigned long long)limits->bytes_max);
    return 0;
}

/* ---- numbers ---- */

bool tar_header_number(const char *field, size_t width, uint64_t *ret)
{
    const unsigned char *at = (const unsigned char *)field;
    uint64_t value = 0;
    size_t i = 0;

    if (at[0] & 0x80) {
        for (i = 0; i < width; i++) {
            if (value >> 55)
                return false;
            value = value << 8 | (i ? at[i] : at[i] & 0x7f);
        }
        *ret = value;
        return true;
    }
    while (i < width && at[i] == ' ')
        i++;
    for (; i < width && at[i] >= '0' && at[i] <= '7'; i++)
        value = value << 3 | (at[i] - '0');
    for (; i < width; i++)
        if (at[i] != ' ' && at[i] != '\0')
            return false;
    *ret = value;
    return true;
}

bool tar_header_sum_is_right(const struct tar_header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    size_t from = offsetof(struct tar_header, sum);
    uint64_t wanted;
    unsigned sum = 0;

    for (size_t i = 0; i < sizeof(*h); i++)
        sum += i >= from && i < from + sizeof(h->sum) ? ' ' : bytes[i];
    return tar_header_number(h->sum, sizeof(h->sum), &wanted) && wanted == sum;
}

static int64_t tar_reader_decimal(const char *text, size_t len, bool *ret_ok)
{
    bool is_negative = len && text[0] == '-';
    int64_t value = 0;
    size_t i = is_negative;

    *ret_ok = i < len;
    for (; i < len && text[i] != '.'; i++) {
        if (text[i] < '0' || text[i] > '9' || value > INT64_MAX / 10 - 1) {
            *ret_ok = false;
            return 0;
        }
        value = value * 10 + (text[i] - '0');
    }
    return is_negative ? -value : value;
}

/* Of a time that is not negative: what follows the point, in nanoseconds. */
static long tar_reader_fraction(const char *text, size_t len)
{
    const char *point = memchr(text, '.', len);
    long value = 0;

    for (size_t i = 1; point && text[0] != '-' && i <= 9; i++) {
        char digit = point + i < text + len ? point[i] : '0';

        value = value * 10 + (digit >= '0' && digit <= '9' ? digit - '0' : 0);
    }
    return value;
}

/* ---- records ---- */

static int tar_reader_take_text(struct strbuf *into, const char *value, size_t len,
                                struct aq_error *err)
{
    if (len >= PATH_MAX || memchr(value, '\0', len))
        return tar_reader_fail(err, "a name in it is too long, or has a zero byte");
    strbuf_clear(into);
    strbuf_add(into, value, len);
    return strbuf_ok(into) ? 0 : aq_fail_oom(err);
}

static int tar_reader_take_note(struct tar_reader *t, const char *value, size_t len,
                                struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = strndup(value, len);

    if (!text)
        return aq_fail_oom(err);
    return t->ops->on_note ? t->ops->on_note(t->data, text, err) : 0;
}

#define IS_KEY(key, len, word) ((len) == sizeof(word) - 1 && memcmp(key, word, len) == 0)

static int tar_reader_take_record(struct tar_reader *t, const char *key, size_t key_len,
                                  const char *value, size_t len, struct aq_error *err)
{
    bool ok = true;
    int64_t number;

    if (t->meta_flag == TAR_FLAG_GLOBAL)
        return IS_KEY(key, key_len, "comment") ? tar_reader_take_note(t, value, len, err) : 0;
    if (IS_KEY(key, key_len, "path"))
        return tar_reader_take_text(&t->name, value, len, err);
    if (IS_KEY(key, key_len, "linkpath"))
        return tar_reader_take_text(&t->target, value, len, err);
    if (IS_KEY(key, key_len, "mtime")) {
        t->mtime = tar_reader_decimal(value, len, &ok);
        t->mtime_nsec = tar_reader_fraction(value, len);
        t->has_mtime = true;
    } else if (IS_KEY(key, key_len, "size")) {
        number = tar_reader_decimal(value, len, &ok);
        ok = ok && number >= 0;
        t->size = (uint64_t)number;
        t->has_size = true;
    } else if (key_len > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
        return tar_reader_fail(err, "a file in it is sparse; pack it without --sparse");
    }
    return ok ? 0 : tar_reader_fail(err, "a number in it is none");
}

static int tar_reader_take_records(struct tar_reader *t, struct aq_error *err)
{
    const char *at = t->meta.data, *end = at + t->meta.len;
    int r = 0;

    while (r == 0 && at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at)), *equals;
        bool ok = false;
        int64_t len = space ? tar_reader_decimal(at, (size_t)(space - at), &ok) : 0;

        if (!ok || len < space - at + 3 || len > end - at || at[len - 1] != '\n'
            || !(equals = memchr(space, '=', (size_t)(at + len - space))))
            return tar_reader_fail(err, "a record in it is malformed");
        r = tar_reader_take_record(t, space + 1, (size_t)(equals - space) - 1, equals + 1,
                                   (size_t)(at + len - 1 - equals - 1), err);
        at += len;
    }
    return r;
}

static int tar_reader_end_meta(struct tar_reader *t, struct aq_error *err)
{
    struct strbuf *into = t->meta_flag == TAR_FLAG_GNU_NAME     ? &t->name
                          : t->meta_flag == TAR_FLAG_GNU_TARGET ? &t->target
                                                                : NULL;

    if (!strbuf_ok(&t->meta))
        return aq_fail_oom(err);
    return into ? tar_reader_take_text(into, t->meta.data, strnlen(t->meta.data, t->meta.len), err)
                : tar_reader_take_records(t, err);
}

/* ---- headers ---- */

/* A name of the header, with ustar's prefix. */
static int tar_reader_header_text(const struct tar_header *h, bool is_name, struct strbuf *into,
                                  struct aq_error *err)
{
    const char *field = is_name ? h->name : h->target;

    strbuf_clear(into);
    if (is_name && memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0]) {
        strbuf_add(into, h->prefix, strnlen(h->prefix, sizeof(h->prefix)));
        strbuf_addc(into, '/');
    }
    strbuf_add(into, field, strnlen(field, TAR_NAME_MAX));
    return strbuf_ok(into) ? 0 : aq_fail_oom(err);
}

static enum tar_type tar_reader_type(char flag, const struct strbuf *name)
{
    if (flag == TAR_FLAG_FOLDER)
        return TAR_FOLDER;
    if (flag == TAR_FLAG_LINK)
        return TAR_LINK;
    if (flag != TAR_FLAG_FILE && flag != '\0' && flag != TAR_FLAG_CONTIGUOUS)
        return TAR_OTHER;
    return name->len && name->data[name->len - 1] == '/' ? TAR_FOLDER : TAR_FILE;
}

static int tar_reader_begin_entry(struct tar_reader *t, const struct tar_header *h,
                                  struct aq_error *err)
{
    struct tar_entry e = { .flag = h->flag };
    uint64_t mode = 0, mtime = 0;
    int r = 0;

    if (!t->name.len)
        r = tar_reader_header_text(h, true, &t->name, err);
    if (r == 0 && !t->target.len)
        r = tar_reader_header_text(h, false, &t->target, err);
    if (r < 0)
        return r;
    if (!t->name.len || !tar_header_number(h->mode, sizeof(h->mode), &mode)
        || !tar_header_number(h->mtime, sizeof(h->mtime), &mtime)
        || (!t->has_size && !tar_header_number(h->size, sizeof(h->size), &t->size)))
        return tar_reader_fail(err, "an entry in it has no name, or a number that is none");
    e.type = tar_reader_type(h->flag, &t->name);
    e.name = t->name.data;
    e.target = t->target.data;
    e.mode = (mode_t)(mode & 07777);
    e.size = e.type == TAR_FILE ? t->size : 0;
    e.mtime = t->has_mtime ? t->mtime : (int64_t)mtime;
    e.mtime_nsec = t->has_mtime ? t->mtime_nsec : 0;
    r = tar_count_entry(&t->count, &t->limits, e.size, err);
    if (r == 0)
        r = t->ops->on_entry(t->data, &e, err);
    t->left = e.size;
    t->padding = tar_padding(e.size);
    t->state = TAR_AT_BYTES;
    strbuf_clear(&t->name);
    strbuf_clear(&t->target);
    t->has_size = t->has_mtime = false;
    return r;
}

static bool tar_reader_is_meta(char flag)
{
    return flag == TAR_FLAG_PAX || flag == TAR_FLAG_GLOBAL || flag == TAR_FLAG_GNU_NAME
           || flag == TAR_FLAG_GNU_TARGET;
}

bool tar_header_is_zero(const char block[TAR_BLOCK])
{
    for (size_t i = 0; i < TAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

static int tar_reader_take_header(struct tar_reader *t, struct aq_error *err)
{
    struct tar_header h;
    uint64_t size;

    t->block_len = 0;
    if (tar_header_is_zero(t->block)) {
        if (++t->zero_blocks == 2)
            t->state = TAR_AT_END;
        return 0;
    }
    t->zero_blocks = 0;
    memcpy(&h, t->block, sizeof(h));
    if (!tar_header_sum_is_right(&h))
        return tar_reader_fail(err, "a checksum in it is wrong");
    if (!tar_reader_is_meta(h.flag))
        return tar_reader_begin_entry(t, &h, err);
    if (!tar_header_number(h.size, sizeof(h.size), &size) || size > META_MAX)
        return tar_reader_fail(err, "the records before an entry are too long");
    t->meta_flag = h.flag;
    strbuf_clear(&t->meta);
    t->left = size;
    t->padding = tar_padding(size);
    t->state = TAR_AT_META;
    return 0;
}

/* ---- pieces ---- */

/* All bytes of this part are there. */
static int tar_reader_end_part(struct tar_reader *t, struct aq_error *err)
{
    bool is_meta = t->state == TAR_AT_META;

    t->state = TAR_AT_PADDING;
    return is_meta ? tar_reader_end_meta(t, err) : t->ops->on_entry_end(t->data, err);
}

/* Take some of 'len' bytes, which may be 0. */
static int tar_reader_take(struct tar_reader *t, const char *bytes, size_t len, size_t *ret_used,
                           struct aq_error *err)
{
    size_t part = t->state == TAR_AT_HEADER    ? AQ_MIN(len, TAR_BLOCK - t->block_len)
                  : t->state == TAR_AT_PADDING ? AQ_MIN(len, t->padding)
                                               : (size_t)AQ_MIN((uint64_t)len, t->left);
    int r = 0;

    *ret_used = part;
    switch (t->state) {
    case TAR_AT_HEADER:
        memcpy(t->block + t->block_len, bytes, part);
        t->block_len += part;
        return t->block_len == TAR_BLOCK ? tar_reader_take_header(t, err) : 0;
    case TAR_AT_META:
    case TAR_AT_BYTES:
        if (t->state == TAR_AT_META)
            strbuf_add(&t->meta, bytes, part);
        else if (part)
            r = t->ops->on_bytes(t->data, bytes, part, err);
        t->left -= part;
        return r || t->left ? r : tar_reader_end_part(t, err);
    case TAR_AT_PADDING:
        t->padding -= part;
        if (!t->padding)
            t->state = TAR_AT_HEADER;
        return 0;
    case TAR_AT_END:
    default:
        *ret_used = len; /* blocks up to a record's end */
        return 0;
    }
}

/* Nothing more has to come for the next step. */
static bool tar_reader_can_go_on(const struct tar_reader *t)
{
    return t->state == TAR_AT_PADDING
               ? !t->padding
               : (t->state == TAR_AT_META || t->state == TAR_AT_BYTES) && !t->left;
}

int tar_reader_feed(struct tar_reader *t, const char *bytes, size_t len, struct aq_error *err)
{
    int r = 0;

    while (r == 0 && (len || tar_reader_can_go_on(t))) {
        size_t used;

        r = tar_reader_take(t, bytes, len, &used, err);
        bytes += used;
        len -= used;
    }
    return r;
}

int tar_reader_finish(const struct tar_reader *t, struct aq_error *err)
{
    return t->state == TAR_AT_END ? 0
                                  : aq_fail_kind(err, ECONNRESET, "transfer-cut",
                                                 "the transfer was cut off before its end");
}
