/* SPDX-License-Identifier: Apache-2.0 */
/* A dump of a database of Backend.AI, whole and in two pieces; its dotfiles. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/backendai/dotfiles.h"
#include "cli/backendai/source.h"
#include "cli/backendai/sql_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read, or NULL: then 'err' says why. */
static char *read_in_pieces(const uint8_t *data, size_t size, size_t split, struct aq_error *err)
{
    struct source source;
    struct sql_dump *dump;
    char *read = NULL;
    int r;

    source_init(&source);
    dump = sql_dump_new(&source_dump_ops, &source);
    r = sql_dump_feed(dump, (const char *)data, split, err);
    if (r == 0)
        r = sql_dump_feed(dump, (const char *)data + split, size - split, err);
    if (r == 0)
        r = sql_dump_end(dump, err);
    if (r == 0)
        r = source_finish(&source, false, err);
    if (r == 0 && source.bytes > SOURCE_BYTES_MAX)
        __builtin_trap();
    if (r == 0)
        read = json_dumps(source.tables, JSON_SORT_KEYS);
    else if (!err->text[0])
        __builtin_trap();
    sql_dump_free(dump);
    source_done(&source);
    return read;
}

static void read_dotfiles(const uint8_t *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *text = malloc(2 * size + 3);
    json_t *files = NULL;

    if (!text)
        abort();
    memcpy(text, "\\x", 2);
    for (size_t i = 0; i < size; i++) {
        text[2 + 2 * i] = digits[data[i] >> 4];
        text[3 + 2 * i] = digits[data[i] & 15];
    }
    text[2 * size + 2] = '\0';
    if (dotfiles_read(text, &files, NULL) == 0 && !json_is_array(files))
        __builtin_trap();
    json_decref(files);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct aq_error whole_err = { 0 }, pieces_err = { 0 };
    char *whole = read_in_pieces(data, size, size, &whole_err);
    char *pieces = read_in_pieces(data, size, size ? data[0] % (size + 1) : 0, &pieces_err);

    if (!whole != !pieces || (whole && strcmp(whole, pieces) != 0)
        || strcmp(whole_err.text, pieces_err.text) != 0)
        __builtin_trap();
    free(whole);
    free(pieces);
    read_dotfiles(data, size);
    return 0;
}
