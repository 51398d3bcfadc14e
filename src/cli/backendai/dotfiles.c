/* SPDX-License-Identifier: Apache-2.0 */
/* Backend.AI's dotfiles: a list of maps of texts, as MessagePack.
 * https://github.com/msgpack/msgpack/blob/master/spec.md
 */
#include "cli/backendai/dotfiles.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FILES_MAX 1000
#define MEMBERS_MAX 16

struct dotfiles_reader {
    const unsigned char *at;
    size_t left;
};

static int dotfiles_fail(struct aq_error *err)
{
    return aq_fail(err, EINVAL, "dotfiles are not a list of path, perm and data in MessagePack");
}

/* A number of so many bytes; -EINVAL if there are less. */
static int dotfiles_take_number(struct dotfiles_reader *reader, size_t bytes, size_t *ret)
{
    if (reader->left < bytes)
        return -EINVAL;
    for (*ret = 0; bytes; bytes--, reader->left--)
        *ret = *ret << 8 | *reader->at++;
    return 0;
}

/* How long is the list, map or text that comes next? 'fixed' and 'mask' say the byte that holds
 * the length itself, 'sizes' the bytes that lengths of 1, 2 and 4 bytes come after; 0 = none.
 */
static int dotfiles_take_length(struct dotfiles_reader *reader, unsigned char fixed,
                                unsigned char mask, const unsigned char sizes[3], size_t *ret)
{
    size_t kind;

    if (dotfiles_take_number(reader, 1, &kind) < 0)
        return -EINVAL;
    if ((kind & (unsigned char)~mask) == fixed) {
        *ret = kind & mask;
        return 0;
    }
    for (size_t i = 0; i < 3; i++)
        if (sizes[i] && kind == sizes[i])
            return dotfiles_take_number(reader, (size_t)1 << i, ret);
    return -EINVAL;
}

static int dotfiles_take_list(struct dotfiles_reader *reader, size_t *ret)
{
    return dotfiles_take_length(reader, 0x90, 0x0f, (const unsigned char[]){ 0, 0xdc, 0xdd }, ret);
}

static int dotfiles_take_map(struct dotfiles_reader *reader, size_t *ret)
{
    return dotfiles_take_length(reader, 0x80, 0x0f, (const unsigned char[]){ 0, 0xde, 0xdf }, ret);
}

/* A text, or bytes: NULL if it is neither, or no UTF-8. */
static json_t *dotfiles_take_text(struct dotfiles_reader *reader)
{
    bool is_bytes = reader->left && reader->at[0] >= 0xc4 && reader->at[0] <= 0xc6;
    const unsigned char text[] = { 0xd9, 0xda, 0xdb }, bytes[] = { 0xc4, 0xc5, 0xc6 };
    json_t *made;
    size_t len;

    if (dotfiles_take_length(reader, 0xa0, 0x1f, is_bytes ? bytes : text, &len) < 0
        || len > reader->left)
        return NULL;
    made = json_stringn((const char *)reader->at, len);
    reader->at += len;
    reader->left -= len;
    return made;
}

static json_t *dotfiles_take_file(struct dotfiles_reader *reader)
{
    json_t *file = json_object();
    size_t members;

    if (dotfiles_take_map(reader, &members) < 0 || members > MEMBERS_MAX) {
        json_decref(file);
        return NULL;
    }
    for (; file && members; members--) {
        json_auto_t *key = dotfiles_take_text(reader), *value = dotfiles_take_text(reader);

        if (!key || !value || json_object_set(file, json_string_value(key), value) < 0) {
            json_decref(file);
            file = NULL;
        }
    }
    return file;
}

static json_t *dotfiles_take_all(struct dotfiles_reader *reader)
{
    json_t *files = json_array(), *file;
    size_t count;

    if (dotfiles_take_list(reader, &count) < 0 || count > FILES_MAX)
        count = SIZE_MAX;
    for (; files && count; count--) {
        file = count == SIZE_MAX ? NULL : dotfiles_take_file(reader);
        if (!file || json_array_append_new(files, file) < 0) {
            json_decref(files);
            files = NULL;
        }
    }
    return files;
}

static int dotfiles_digit(char c)
{
    if (isdigit((unsigned char)c))
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes of a hexadecimal text, to be freed; NULL if it has other characters. */
static unsigned char *dotfiles_read_hex(const char *text, size_t *ret_len)
{
    size_t len = strlen(text) / 2;
    unsigned char *bytes = strlen(text) % 2 == 0 ? aq_alloc(len + 1) : NULL;

    for (size_t i = 0; bytes && i < len; i++) {
        int high = dotfiles_digit(text[2 * i]), low = dotfiles_digit(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            free(bytes);
            return NULL;
        }
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    *ret_len = len;
    return bytes;
}

int dotfiles_read(const char *text, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) unsigned char *bytes = NULL;
    struct dotfiles_reader reader;
    json_t *files;

    if (strncmp(text, "\\x", 2) != 0 || !(bytes = dotfiles_read_hex(text + 2, &reader.left)))
        return dotfiles_fail(err);
    reader.at = bytes;
    if (!(files = dotfiles_take_all(&reader)))
        return dotfiles_fail(err);
    if (reader.left) {
        json_decref(files);
        return dotfiles_fail(err);
    }
    *ret = files;
    return 0;
}
