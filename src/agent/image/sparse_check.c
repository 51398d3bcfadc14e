/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_check.c - checks the maps of sparse files in a tar file as it passes by */
#include "agent/image/sparse_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "transfer/tar.h"
#include "transfer/tar_header.h"

#define RECORDS_MAX ((uint64_t)1 << 20) /* as libarchive has it */
#define SIZE_MAX_OF_FILE ((uint64_t)INT64_MAX)
#define OLD_PARTS 4   /* in the header */
#define MORE_PARTS 21 /* in each block after it */

struct sparse_part {
    char offset[12], len[12];
};

/* The old format's header: what is behind ustar's names is the map. */
struct sparse_header {
    char common[386];
    struct sparse_part parts[OLD_PARTS];
    char is_extended, size[12], unused[17];
};
_Static_assert(sizeof(struct sparse_header) == TAR_BLOCK, "a block");

struct sparse_more {
    struct sparse_part parts[MORE_PARTS];
    char is_extended, unused[7];
};
_Static_assert(sizeof(struct sparse_more) == TAR_BLOCK, "a block");

enum sparse_state {
    SPARSE_HEADER,
    SPARSE_RECORDS, /* of pax */
    SPARSE_MORE,    /* a block of the old format's map */
    SPARSE_MAP,     /* of pax 1.0, before a file's data */
    SPARSE_OFF,     /* at the end, or lost */
};

struct sparse_check {
    enum sparse_state state;
    uint64_t skip; /* bytes before that */
    char block[TAR_BLOCK];
    size_t block_len;
    struct strbuf records;
    uint64_t left; /* of the records, or of the entry's bytes */
    /* of the entry */
    char name[160];
    bool is_named;   /* its header has come */
    const char *why; /* what the records before that have of its map cannot be; NULL = nothing */
    bool has_size, has_real_size, has_count, is_newest;
    uint64_t size, real_size, wanted_count, offset;
    /* of its map */
    uint64_t count, end, sum;
    /* pax 1.0: the line at hand, how many have come, and how many bytes they took */
    uint64_t number, lines, map_bytes;
    size_t line_len;
    bool is_comment;
};

struct sparse_check *sparse_check_new(void)
{
    struct sparse_check *c = aq_alloc(sizeof(*c));

    strbuf_init(&c->records);
    return c;
}

void sparse_check_free(struct sparse_check *c)
{
    if (!c)
        return;
    strbuf_done(&c->records);
    free(c);
}

/* ---- a map ---- */

/* 'why' is static unless the entry is named. Before that it is kept for then. */
static int sparse_check_fail(struct sparse_check *c, const char *why, struct aq_error *err)
{
    if (!c->is_named) {
        c->why = c->why ? c->why : why;
        return 0;
    }
    return aq_fail(err, EBADMSG, "entry '%s': the map of its holes %s", c->name, why);
}

static int sparse_check_add(struct sparse_check *c, uint64_t offset, uint64_t len,
                            struct aq_error *err)
{
    if (offset > SIZE_MAX_OF_FILE || len > SIZE_MAX_OF_FILE - offset)
        return sparse_check_fail(c, "exceeds the largest size of a file", err);
    if (offset < c->end)
        return sparse_check_fail(c, "has parts that overlap or are not in order", err);
    c->count++;
    c->end = offset + len;
    c->sum += len;
    return 0;
}

/* The map is complete; 'stored' bytes of data follow. */
static int sparse_check_judge(struct sparse_check *c, uint64_t stored, struct aq_error *err)
{
    char why[120];

    if (c->has_count && c->count != c->wanted_count)
        return sparse_check_fail(c, "has a different number of parts than it states", err);
    if (c->has_real_size && c->end > c->real_size)
        (void)snprintf(why, sizeof(why), "ends at byte %llu of a file of %llu",
                       (unsigned long long)c->end, (unsigned long long)c->real_size);
    else if (c->sum != stored)
        (void)snprintf(why, sizeof(why), "names %llu bytes of data, and %llu are stored",
                       (unsigned long long)c->sum, (unsigned long long)stored);
    else
        return 0;
    return sparse_check_fail(c, why, err);
}

static void sparse_check_forget(struct sparse_check *c)
{
    c->name[0] = '\0';
    c->is_named = false;
    c->why = NULL;
    c->has_size = c->has_real_size = c->has_count = c->is_newest = c->is_comment = false;
    c->count = c->end = c->sum = c->offset = 0;
    c->number = c->lines = c->map_bytes = 0;
    c->line_len = 0;
}

/* Pass over an entry's bytes and go on. */
static void sparse_check_pass(struct sparse_check *c, uint64_t bytes)
{
    c->state = SPARSE_HEADER;
    c->skip = bytes + tar_padding(bytes);
    sparse_check_forget(c);
}

/* ---- records of pax ---- */

/* Decimal digits, and nothing else. */
static bool sparse_check_number(const char *text, size_t len, uint64_t *ret)
{
    uint64_t value = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || value > SIZE_MAX_OF_FILE / 10 - 1)
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = value;
    return len > 0;
}

/* "OFFSET,LENGTH,OFFSET,LENGTH,..." */
static int sparse_check_take_list(struct sparse_check *c, const char *text, size_t len,
                                  struct aq_error *err)
{
    const char *end = text + len;
    bool is_length = false;
    uint64_t value;
    int r = 0;

    while (r == 0 && text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t word = (size_t)((comma ? comma : end) - text);

        if (!sparse_check_number(text, word, &value))
            return sparse_check_fail(c, "contains an invalid number", err);
        if (is_length)
            r = sparse_check_add(c, c->offset, value, err);
        c->offset = value;
        is_length = !is_length;
        text += word + (comma != NULL);
    }
    return r == 0 && is_length ? sparse_check_fail(c, "ends with an offset without a length", err)
                               : r;
}

static int sparse_check_take_record(struct sparse_check *c, const char *key, const char *value,
                                    size_t len, struct aq_error *err)
{
    uint64_t number = 0;
    bool is_number = sparse_check_number(value, len, &number);

    if (strcmp(key, "path") == 0 || strcmp(key, "GNU.sparse.name") == 0) {
        (void)snprintf(c->name, sizeof(c->name), "%.*s", (int)AQ_MIN(len, sizeof(c->name) - 1),
                       value);
        return 0;
    }
    if (strcmp(key, "GNU.sparse.map") == 0)
        return sparse_check_take_list(c, value, len, err);
    if (strcmp(key, "size") == 0) {
        c->has_size = is_number;
        c->size = number;
    } else if (strcmp(key, "GNU.sparse.size") == 0 || strcmp(key, "GNU.sparse.realsize") == 0) {
        c->has_real_size = is_number;
        c->real_size = number;
    } else if (strcmp(key, "GNU.sparse.numblocks") == 0) {
        c->has_count = is_number;
        c->wanted_count = number;
    } else if (strcmp(key, "GNU.sparse.major") == 0) {
        c->is_newest = number == 1;
    } else if (strcmp(key, "GNU.sparse.offset") == 0) {
        c->offset = number;
    } else if (strcmp(key, "GNU.sparse.numbytes") == 0) {
        return sparse_check_add(c, c->offset, number, err);
    } else {
        return 0;
    }
    return is_number || strncmp(key, "GNU.", 4) != 0
               ? 0
               : sparse_check_fail(c, "contains an invalid number", err);
}

/* "LENGTH KEY=VALUE\n", the length of all of it. */
static int sparse_check_take_records(struct sparse_check *c, struct aq_error *err)
{
    const char *at = c->records.data, *end = at + c->records.len;
    int r = 0;

    while (r == 0 && at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at)), *equals;
        uint64_t len = 0;
        char key[32];

        if (!space || !sparse_check_number(at, (size_t)(space - at), &len)
            || len < (uint64_t)(space - at) + 3 || len > (uint64_t)(end - at)
            || !(equals = memchr(space, '=', (size_t)(at + len - 1 - space)))) {
            c->state = SPARSE_OFF;
            return 0;
        }
        (void)snprintf(key, sizeof(key), "%.*s", (int)AQ_MIN(equals - space - 1, 31), space + 1);
        r = sparse_check_take_record(c, key, equals + 1, (size_t)(at + len - 1 - equals - 1), err);
        at += len;
    }
    return r;
}

/* ---- the old format ---- */

static int sparse_check_take_parts(struct sparse_check *c, const struct sparse_part *parts,
                                   size_t count, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count && parts[i].offset[0]; i++) {
        uint64_t offset, len;

        if (!tar_header_number(parts[i].offset, sizeof(parts[i].offset), &offset)
            || !tar_header_number(parts[i].len, sizeof(parts[i].len), &len))
            return sparse_check_fail(c, "contains an invalid number", err);
        r = sparse_check_add(c, offset, len, err);
    }
    return r;
}

/* More of the map, or the data, comes next. */
static int sparse_check_go_on(struct sparse_check *c, bool is_extended, struct aq_error *err)
{
    int r;

    c->state = SPARSE_MORE;
    if (is_extended)
        return 0;
    r = sparse_check_judge(c, c->left, err);
    sparse_check_pass(c, c->left);
    return r;
}

static int sparse_check_take_old(struct sparse_check *c, struct aq_error *err)
{
    struct sparse_header h;
    int r;

    memcpy(&h, c->block, sizeof(h));
    c->has_real_size = tar_header_number(h.size, sizeof(h.size), &c->real_size);
    r = sparse_check_take_parts(c, h.parts, OLD_PARTS, err);
    return r < 0 ? r : sparse_check_go_on(c, h.is_extended, err);
}

static int sparse_check_take_more(struct sparse_check *c, struct aq_error *err)
{
    struct sparse_more more;
    int r;

    memcpy(&more, c->block, sizeof(more));
    r = sparse_check_take_parts(c, more.parts, MORE_PARTS, err);
    return r < 0 ? r : sparse_check_go_on(c, more.is_extended, err);
}

/* ---- pax 1.0 ---- */

/* The first line is how many parts there are; two for each follow. */
static int sparse_check_end_line(struct sparse_check *c, struct aq_error *err)
{
    uint64_t taken = c->map_bytes, map = taken + tar_padding(taken);
    int r = 0;

    if (!c->is_comment && !c->line_len)
        return sparse_check_fail(c, "contains an invalid number", err);
    if (!c->is_comment) {
        if (!c->lines++)
            c->wanted_count = c->number;
        else if (c->lines % 2 == 0)
            c->offset = c->number;
        else
            r = sparse_check_add(c, c->offset, c->number, err);
    }
    c->is_comment = false;
    c->line_len = 0;
    c->number = 0;
    if (r < 0 || !c->lines || c->count < c->wanted_count)
        return r;
    if (map > c->size)
        return sparse_check_fail(c, "is longer than the entry", err);
    r = sparse_check_judge(c, c->size - map, err);
    sparse_check_pass(c, c->size);
    c->skip -= taken;
    return r;
}

static int sparse_check_take_map(struct sparse_check *c, char byte, struct aq_error *err)
{
    if (!c->left--)
        return sparse_check_fail(c, "is longer than the entry", err);
    c->map_bytes++;
    if (byte == '\n')
        return sparse_check_end_line(c, err);
    if (byte == '#' && !c->line_len)
        c->is_comment = true;
    c->line_len++;
    if (c->is_comment)
        return 0;
    if (byte < '0' || byte > '9' || c->number > SIZE_MAX_OF_FILE / 10 - 1)
        return sparse_check_fail(c, "contains an invalid number", err);
    c->number = c->number * 10 + (uint64_t)(byte - '0');
    return 0;
}

/* ---- entries ---- */

static int sparse_check_take_file(struct sparse_check *c, const struct tar_header *h,
                                  struct aq_error *err)
{
    int r;

    c->left = c->size;
    c->is_named = true;
    if (c->why)
        return sparse_check_fail(c, c->why, err);
    if (h->flag == TAR_FLAG_GNU_SPARSE)
        return sparse_check_take_old(c, err);
    if (c->is_newest) {
        c->count = c->end = c->sum = 0;
        c->has_count = false;
        c->state = SPARSE_MAP;
        return c->size ? 0 : sparse_check_fail(c, "is missing", err);
    }
    r = c->count || c->has_count ? sparse_check_judge(c, c->size, err) : 0;
    sparse_check_pass(c, c->size);
    return r;
}

static int sparse_check_take_header(struct sparse_check *c, struct aq_error *err)
{
    struct tar_header h;
    uint64_t size;
    bool is_plain;

    memcpy(&h, c->block, sizeof(h));
    c->state = SPARSE_OFF;
    if (tar_header_is_zero(c->block) || !tar_header_sum_is_right(&h)
        || !tar_header_number(h.size, sizeof(h.size), &size) || size > SIZE_MAX_OF_FILE - TAR_BLOCK)
        return 0;
    if (h.flag == TAR_FLAG_PAX || h.flag == 'X') {
        sparse_check_forget(c);
        c->left = size;
        strbuf_clear(&c->records);
        c->state = size && size <= RECORDS_MAX ? SPARSE_RECORDS : SPARSE_OFF;
        return 0;
    }
    if (h.flag == TAR_FLAG_GLOBAL || h.flag == TAR_FLAG_GNU_NAME || h.flag == TAR_FLAG_GNU_TARGET) {
        c->state = SPARSE_HEADER;
        c->skip = size + tar_padding(size);
        return 0;
    }
    if (h.flag == '1' && (size || c->has_size)) /* whether bytes follow is a matter of opinion */
        return 0;
    is_plain = h.flag >= '1' && h.flag <= '6';
    c->size = is_plain ? 0 : c->has_size ? c->size : size;
    if (!c->name[0])
        (void)snprintf(c->name, sizeof(c->name), "%.*s", (int)sizeof(h.name), h.name);
    if (!is_plain)
        return sparse_check_take_file(c, &h, err);
    sparse_check_pass(c, 0);
    return 0;
}

/* ---- pieces ---- */

static int sparse_check_take_block(struct sparse_check *c, struct aq_error *err)
{
    c->block_len = 0;
    return c->state == SPARSE_HEADER ? sparse_check_take_header(c, err)
                                     : sparse_check_take_more(c, err);
}

static int sparse_check_end_records(struct sparse_check *c, struct aq_error *err)
{
    c->state = SPARSE_HEADER;
    c->skip = tar_padding(c->records.len);
    return sparse_check_take_records(c, err);
}

int sparse_check_feed(struct sparse_check *c, const char *bytes, size_t len, struct aq_error *err)
{
    int r = 0;

    while (r == 0 && len && c->state != SPARSE_OFF) {
        size_t part = 1;

        if (c->skip) {
            part = (size_t)AQ_MIN((uint64_t)len, c->skip);
            c->skip -= part;
        } else if (c->state == SPARSE_MAP) {
            r = sparse_check_take_map(c, *bytes, err);
        } else if (c->state == SPARSE_RECORDS) {
            part = (size_t)AQ_MIN((uint64_t)len, c->left);
            strbuf_add(&c->records, bytes, part);
            c->left -= part;
            if (!c->left)
                r = sparse_check_end_records(c, err);
        } else {
            part = AQ_MIN(len, TAR_BLOCK - c->block_len);
            memcpy(c->block + c->block_len, bytes, part);
            c->block_len += part;
            if (c->block_len == TAR_BLOCK)
                r = sparse_check_take_block(c, err);
        }
        bytes += part;
        len -= part;
    }
    return r;
}
