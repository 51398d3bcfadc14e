/* SPDX-License-Identifier: Apache-2.0 */
/* tar_header.h - a tar header's block, as ustar has it */
#ifndef AQ_TRANSFER_TAR_HEADER_H
#define AQ_TRANSFER_TAR_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_NAME_MAX 100
#define TAR_OCTAL_MAX 077777777777 /* of 11 digits */

struct tar_header {
    char name[TAR_NAME_MAX], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], flag;
    char target[TAR_NAME_MAX], magic[6], version[2], user[32], group[32], major[8], minor[8];
    char prefix[155], unused[12];
};
_Static_assert(sizeof(struct tar_header) == 512, "a block");

/* Octal text, or GNU's binary form; false if it is neither or too large. */
bool tar_header_number(const char *field, size_t width, uint64_t *ret);
bool tar_header_sum_is_right(const struct tar_header *h);
/* Such a block begins the end of an archive. */
bool tar_header_is_zero(const char block[sizeof(struct tar_header)]);

#define TAR_FLAG_FILE '0'
#define TAR_FLAG_LINK '2'
#define TAR_FLAG_FOLDER '5'
#define TAR_FLAG_CONTIGUOUS '7'
#define TAR_FLAG_PAX 'x'
#define TAR_FLAG_GLOBAL 'g'
#define TAR_FLAG_GNU_NAME 'L'
#define TAR_FLAG_GNU_TARGET 'K'
#define TAR_FLAG_GNU_SPARSE 'S'

#endif
