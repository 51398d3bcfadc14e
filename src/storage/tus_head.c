/* SPDX-License-Identifier: Apache-2.0 */
/* tus_head.c - see tus_head.h */
#include "storage/tus_head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define PART_PARAMETER "&part="

bool tus_read_number(const char *text, size_t len, uint64_t *ret)
{
    uint64_t value = 0;

    if (len == 0 || len > 18 || strspn(text, "0123456789") < len)
        return false;
    for (size_t i = 0; i < len; i++)
        value = value * 10 + (uint64_t)(text[i] - '0');
    *ret = value;
    return true;
}

static int tus_take_number(const struct message_head *head, const char *name, bool *ret_has,
                           uint64_t *ret, struct aq_error *err)
{
    const char *text = message_get_header(head, name);

    *ret_has = text != NULL;
    if (!text || tus_read_number(text, strlen(text), ret))
        return 0;
    return aq_fail_field(err, EINVAL, name, "%s: '%.40s' is no number of bytes", name, text);
}

/* "final;URL URL ...": of each only the part's number counts, as the token names the upload. */
static int tus_take_parts(const char *urls, struct tus_head *ret, struct aq_error *err)
{
    while (*urls) {
        size_t len = strcspn(urls, " ");
        const char *part = memmem(urls, len, PART_PARAMETER, strlen(PART_PARAMETER));
        uint64_t number;

        if (part)
            part += strlen(PART_PARAMETER);
        if (!part || ret->part_count == UPLOAD_PARTS_MAX
            || !tus_read_number(part, strspn(part, "0123456789"), &number)
            || number >= UPLOAD_PARTS_MAX)
            return aq_fail_field(err, EINVAL, "Upload-Concat",
                                 "Upload-Concat: '%.*s' is no part of this upload",
                                 (int)AQ_MIN(len, (size_t)100), urls);
        ret->parts[ret->part_count++] = (int)number;
        urls += len;
        urls += strspn(urls, " ");
    }
    return ret->part_count
               ? 0
               : aq_fail_field(err, EINVAL, "Upload-Concat", "Upload-Concat: names no parts");
}

int tus_read_head(const struct message_head *head, struct tus_head *ret, struct aq_error *err)
{
    const char *version = message_get_header(head, "Tus-Resumable");
    const char *type = message_get_header(head, "Content-Type");
    const char *concat = message_get_header(head, "Upload-Concat");
    int r;

    *ret = (struct tus_head){
        .is_other_version = version && strcmp(version, "1.0.0") != 0,
        .is_bytes = type && strcasecmp(type, "application/offset+octet-stream") == 0
    };
    r = tus_take_number(head, "Upload-Offset", &ret->has_offset, &ret->offset, err);
    if (r == 0)
        r = tus_take_number(head, "Upload-Length", &ret->has_length, &ret->length, err);
    if (r < 0 || !concat)
        return r;
    if (strcmp(concat, "partial") == 0) {
        ret->concat = TUS_PARTIAL;
        return 0;
    }
    if (strncmp(concat, "final;", 6) != 0)
        return aq_fail_field(err, EINVAL, "Upload-Concat",
                             "Upload-Concat: neither partial nor "
                             "final");
    ret->concat = TUS_FINAL;
    return tus_take_parts(concat + 6, ret, err);
}

int tus_read_part(const char *part, const char *length, uint64_t whole, int *ret_part,
                  uint64_t *ret_length, struct aq_error *err)
{
    uint64_t number;

    *ret_part = UPLOAD_WHOLE;
    *ret_length = whole;
    if (!part)
        return 0;
    if (!tus_read_number(part, strlen(part), &number) || number >= UPLOAD_PARTS_MAX || !length
        || !tus_read_number(length, strlen(length), ret_length) || *ret_length > whole)
        return aq_fail(err, EINVAL, "this is no part of the upload");
    *ret_part = (int)number;
    return 0;
}
