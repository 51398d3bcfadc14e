/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of sparse files in tar files: those of GNU's four formats, and what is wrong with others. */
#include "testing.h"

#include <errno.h>

#include "agent/image/sparse_check.h"
#include "base/strbuf.h"
#include "transfer/tar.h"
#include "transfer/tar_header.h"

static struct strbuf tar;

static void zeros(size_t len)
{
    static const char none[TAR_BLOCK];

    for (size_t part; len; len -= part)
        strbuf_add(&tar, none, part = AQ_MIN(len, sizeof(none)));
}

static void close_header(char block[TAR_BLOCK])
{
    struct tar_header h;
    unsigned sum = 0;

    memcpy(&h, block, sizeof(h));
    memset(h.sum, ' ', sizeof(h.sum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *)&h)[i];
    (void)snprintf(h.sum, sizeof(h.sum), "%06o", sum);
    strbuf_add(&tar, &h, sizeof(h));
}

static void header(char flag, const char *name, size_t size)
{
    struct tar_header h = { .flag = flag, .magic = "ustar", .version = { '0', '0' } };
    char block[TAR_BLOCK];

    (void)snprintf(h.name, sizeof(h.name), "%s", name);
    (void)snprintf(h.size, sizeof(h.size), "%011zo", size);
    memcpy(block, &h, sizeof(h));
    close_header(block);
}

/* "KEY=VALUE" each. */
static void records(const char *const *texts)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf all = STRBUF_INIT;

    for (; *texts; texts++) {
        size_t rest = strlen(*texts) + 2, len = rest + 1;

        while ((size_t)snprintf(NULL, 0, "%zu", len) + rest > len)
            len++;
        strbuf_addf(&all, "%zu %s\n", len, *texts);
    }
    header(TAR_FLAG_PAX, "pax", all.len);
    strbuf_add(&tar, all.data, all.len);
    zeros(tar_padding(all.len));
}

/* What it says of all that is in 'tar', in pieces of each size; then 'tar' is empty. */
static void check(int wanted, const char *words)
{
    static const size_t pieces[] = { 1, 3, 511, 512, 513, 1 << 20 };

    zeros(2 * TAR_BLOCK + 100);
    for (size_t i = 0; i < AQ_COUNT(pieces); i++) {
        AQ_CLEANUP(sparse_check_freep) struct sparse_check *c = sparse_check_new();
        struct aq_error err = { 0 };
        int r = 0;

        for (size_t at = 0; r == 0 && at < tar.len; at += pieces[i])
            r = sparse_check_feed(c, tar.data + at, AQ_MIN(pieces[i], tar.len - at), &err);
        assert_row(r == wanted && strstr(err.text, words), "'%s': %d '%s'", words, r, err.text);
    }
    strbuf_clear(&tar);
}

static void good(void)
{
    check(0, "");
}

static void bad(const char *words)
{
    check(-EBADMSG, words);
}

/* A file behind it shows that its bytes were followed: it is one that is always refused. */
static void bad_file_follows(void)
{
    records((const char *const[]){ "GNU.sparse.map=7,1,3,1", NULL });
    header('0', "last", 2);
    zeros(TAR_BLOCK);
    bad("entry 'last': the map of its holes has parts that overlap or are not in order");
}

/* ---- the old format ---- */

static void add_part(char *at, uint64_t offset, uint64_t len)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%011llo %011llo ", (unsigned long long)offset,
                   (unsigned long long)len);
    memcpy(at, text, 24);
}

/* Parts of 'pairs' (offset, length), ended by a length of UINT64_MAX. */
static void old(uint64_t (*pairs)[2], uint64_t real, size_t stored)
{
    struct tar_header h = { .name = "old", .flag = 'S', .magic = "ustar ", .version = { ' ', 0 } };
    char block[TAR_BLOCK], text[32];
    size_t i = 0;

    (void)snprintf(h.size, sizeof(h.size), "%011zo", stored);
    memcpy(block, &h, sizeof(h));
    memset(block + 345, 0, sizeof(block) - 345);
    for (; i < 4 && pairs[i][1] != UINT64_MAX; i++)
        add_part(block + 386 + i * 24, pairs[i][0], pairs[i][1]);
    block[482] = pairs[i][1] != UINT64_MAX;
    (void)snprintf(text, sizeof(text), "%011llo ", (unsigned long long)real);
    memcpy(block + 483, text, 12);
    close_header(block);
    while (pairs[i][1] != UINT64_MAX) {
        memset(block, 0, sizeof(block));
        for (size_t k = 0; k < 21 && pairs[i][1] != UINT64_MAX; i++, k++)
            add_part(block + k * 24, pairs[i][0], pairs[i][1]);
        block[504] = pairs[i][1] != UINT64_MAX;
        strbuf_add(&tar, block, sizeof(block));
    }
    zeros(stored + tar_padding(stored));
}

#define PARTS(...) ((uint64_t[][2]){ __VA_ARGS__, { 0, UINT64_MAX } })

static void test_old(void **state)
{
    uint64_t many[31][2];

    (void)state;
    old(PARTS({ 0, 512 }, { 4096, 100 }), 5000, 612);
    good();
    old(PARTS({ 5000, 0 }), 5000, 0);
    good();
    for (size_t i = 0; i < 30; i++) {
        many[i][0] = i * 1024;
        many[i][1] = 512;
    }
    many[30][1] = UINT64_MAX;
    old(many, 40000, 30 * 512);
    bad_file_follows();
    old(many, 40000, 29 * 512);
    bad("entry 'old': the map of its holes names 15360 bytes of data, and 14848 are stored");
    old(PARTS({ 0, 512 }, { 4096, 100 }), 5000, 512);
    bad("names 612 bytes of data, and 512 are stored");
    old(PARTS({ 0, 512 }, { 4096, 100 }), 5000, 613);
    bad("names 612 bytes of data, and 613 are stored");
    old(PARTS({ 0, 512 }, { 4096, 100 }), 4195, 612);
    bad("ends at byte 4196 of a file of 4195");
    old(PARTS({ 0, 512 }, { 511, 100 }), 5000, 612);
    bad("overlap or are not in order");
    old(PARTS({ 4096, 100 }, { 0, 100 }), 5000, 200);
    bad("overlap or are not in order");
    many[25][0] = 0;
    old(many, 40000, 30 * 512);
    bad("overlap or are not in order");
}

/* ---- pax 0.0 and 0.1 ---- */

static void test_records(void **state)
{
    static const struct {
        const char *texts[8];
        size_t stored;
        const char *words; /* NULL = it is right */
    } rows[] = {
        /* 0.0 */
        { { "GNU.sparse.size=5000", "GNU.sparse.numblocks=2", "GNU.sparse.offset=0",
            "GNU.sparse.numbytes=512", "GNU.sparse.offset=4096", "GNU.sparse.numbytes=100" },
          612,
          NULL },
        { { "GNU.sparse.size=5000", "GNU.sparse.numblocks=2", "GNU.sparse.offset=0",
            "GNU.sparse.numbytes=512", "GNU.sparse.offset=4096", "GNU.sparse.numbytes=100" },
          611,
          "names 612 bytes of data, and 611 are stored" },
        { { "GNU.sparse.size=5000", "GNU.sparse.numblocks=2", "GNU.sparse.offset=4096",
            "GNU.sparse.numbytes=512", "GNU.sparse.offset=0", "GNU.sparse.numbytes=100" },
          612,
          "overlap or are not in order" },
        { { "GNU.sparse.size=5000", "GNU.sparse.numblocks=3", "GNU.sparse.offset=0",
            "GNU.sparse.numbytes=512" },
          512,
          "has a different number of parts than it states" },
        { { "GNU.sparse.offset=x" }, 512, "contains an invalid number" },
        /* 0.1 */
        { { "GNU.sparse.size=5000", "GNU.sparse.numblocks=2", "GNU.sparse.map=0,512,4096,100" },
          612,
          NULL },
        { { "GNU.sparse.map=0,512,4096,100", "GNU.sparse.size=5000" }, 612, NULL },
        { { "GNU.sparse.map=5000,0", "GNU.sparse.size=5000" }, 0, NULL },
        { { "GNU.sparse.map=0,512,4096,100", "GNU.sparse.size=4000" },
          612,
          "ends at byte 4196 of a file of 4000" },
        { { "GNU.sparse.map=0,512,500,100", "GNU.sparse.size=5000" }, 612, "overlap" },
        { { "GNU.sparse.map=0,512,4096,100", "GNU.sparse.size=5000" },
          1000,
          "names 612 bytes of data, and 1000 are stored" },
        { { "GNU.sparse.map=0,512,4096", "GNU.sparse.size=5000" },
          512,
          "ends with an offset without a length" },
        { { "GNU.sparse.map=0,,4096,1", "GNU.sparse.size=5000" }, 1, "contains an invalid number" },
        { { "GNU.sparse.map=0,9223372036854775808" }, 1, "contains an invalid number" },
        { { "GNU.sparse.map=9000000000000000000,900000000000000000" },
          1,
          "exceeds the largest size of a file" },
        /* a map that is none, and its size by a record */
        { { "size=612", "GNU.sparse.map=0,512,4096,100", "GNU.sparse.size=5000" }, 612, NULL },
        { { "path=a", "mtime=1.5" }, 612, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        records(rows[i].texts);
        header('0', "file", rows[i].stored);
        zeros(rows[i].stored + tar_padding(rows[i].stored));
        if (rows[i].words)
            bad(rows[i].words);
        else
            bad_file_follows();
    }
}

/* ---- pax 1.0 ---- */

static void newest(const char *real, const char *map, size_t stored)
{
    size_t len = strlen(map), padded = len + tar_padding(len);
    AQ_CLEANUP(aq_freep) char *size = aq_format("GNU.sparse.realsize=%s", real);

    records((const char *const[]){ "GNU.sparse.major=1", "GNU.sparse.minor=0",
                                   "GNU.sparse.name=new", size, NULL });
    header('0', "GNUSparseFile.0/new", padded + stored);
    strbuf_add(&tar, map, len);
    zeros(padded - len + stored + tar_padding(stored));
}

static void test_newest(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf many = STRBUF_INIT;

    (void)state;
    newest("5000", "2\n0\n512\n4096\n100\n", 612);
    bad_file_follows();
    newest("5000", "0\n", 0);
    bad_file_follows();
    newest("5000", "# a comment\n1\n5000\n0\n", 0);
    bad_file_follows();
    strbuf_adds(&many, "200\n");
    for (int i = 0; i < 200; i++)
        strbuf_addf(&many, "%d\n10\n", i * 1000);
    newest("200000", many.data, 2000);
    bad_file_follows();
    newest("200000", many.data, 1999);
    bad("entry 'new': the map of its holes names 2000 bytes of data, and 1999 are stored");
    newest("5000", "2\n0\n512\n4096\n100\n", 613);
    bad("names 612 bytes of data, and 613 are stored");
    newest("4000", "2\n0\n512\n4096\n100\n", 612);
    bad("ends at byte 4196 of a file of 4000");
    newest("5000", "2\n0\n512\n511\n100\n", 612);
    bad("overlap or are not in order");
    newest("5000", "2\n4096\n100\n0\n512\n", 612);
    bad("overlap or are not in order");
    newest("5000", "2\n0\n-1\n", 612);
    bad("contains an invalid number");
    newest("5000", "1\n\n1\n", 1);
    bad("contains an invalid number");
    newest("5000", "9\n0\n1\n", 0);
    bad("contains an invalid number"); /* the padding */
    newest("5000", "", 0);
    bad("is missing");
}

static void test_what_cannot_be_followed(void **state)
{
    (void)state;
    strbuf_adds(&tar, "this is no archive, and libarchive says so");
    good();
    header('1', "link", 5); /* readers do not agree on its bytes */
    records((const char *const[]){ "GNU.sparse.map=7,1,3,1", NULL });
    header('0', "last", 2);
    good();
    header('x', "pax", 10);
    strbuf_adds(&tar, "99 a=b\n...");
    zeros(502);
    good();
    header('5', "folder", 1000); /* it has no bytes, whatever it says */
    header('L', "long", 600);
    zeros(1024);
    header('0', "x", 513);
    zeros(1024);
    bad_file_follows();
}

static int done(void **state)
{
    (void)state;
    strbuf_done(&tar);
    return 0;
}

/* The line ends with "=": it is no record, and what is behind it is not looked at. */
static void test_record_without_value(void **state)
{
    static const char record[] = "18 GNU.sparse.map=";

    (void)state;
    assert_int_equal(strlen(record), 18);
    header(TAR_FLAG_PAX, "pax", strlen(record));
    strbuf_adds(&tar, record);
    zeros(tar_padding(strlen(record)));
    good();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_newest),
        cmocka_unit_test(test_what_cannot_be_followed),
        cmocka_unit_test(test_record_without_value),
    };

    return cmocka_run_group_tests_name("agent/sparse_check", tests, NULL, done);
}
