/* SPDX-License-Identifier: Apache-2.0 */
/* wire_copy.h - a struct with a table of members (wire_fields.h), and all that they point to, in one
 * block
 *
 * For structs without WIRE_LIST and WIRE_OWN. Pure.
 */
#ifndef AQ_MODEL_WIRE_COPY_H
#define AQ_MODEL_WIRE_COPY_H

#include "model/wire_fields.h"

/* 'size' is that of the struct. free() releases the whole copy. */
void *wire_copy(const struct wire_field *fields, const void *from, size_t size);

/* Bytes of that block. */
size_t wire_copy_size(const struct wire_field *fields, const void *from, size_t size);

#endif
