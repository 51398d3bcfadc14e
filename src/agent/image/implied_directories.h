/* SPDX-License-Identifier: Apache-2.0 */
/* implied_directories.h - directories that a layer uses without describing them
 *
 * A layer may hold "a/b/c" without entries for "a" and "a/b": they are those
 * of the layers below. Unpacked alone, it gets such directories with made-up
 * attributes, and in a stack the topmost directory's attributes count. So an
 * image that has any gets one more directory on top, with just these directories and
 * the attributes that they have when all layers are applied in order.
 */
#ifndef AQ_AGENT_IMAGE_IMPLIED_DIRECTORIES_H
#define AQ_AGENT_IMAGE_IMPLIED_DIRECTORIES_H

#include <stddef.h>

#include "base/error.h"

/* 'layers' are directories with fs/ and implied (store_layout.h), lowest first. Make
 * 'path' if it is needed; returns 1 if it was made, else 0 or -errno.
 */
int implied_directories_make(const char *const *layers, size_t count, const char *path,
                             struct aq_error *err);

#endif
