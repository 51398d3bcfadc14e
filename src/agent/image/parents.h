/* parents.h - folders that a layer uses without describing them
 *
 * A layer may hold "a/b/c" without entries for "a" and "a/b": they are those
 * of the layers below. Unpacked alone, it gets such folders with made-up
 * attributes, and in a stack the topmost folder's attributes count. So an
 * image that has any gets one more folder on top, with just these folders and
 * the attributes that they have when all layers are applied in order.
 */
#ifndef AQ_AGENT_IMAGE_PARENTS_H
#define AQ_AGENT_IMAGE_PARENTS_H

#include <stddef.h>

#include "base/error.h"

/* 'layers' are folders with fs/ and implied (folder.h), lowest first. Make
 * 'path' if it is needed; returns 1 if it was made, else 0 or -errno.
 */
int parents_make(const char *const *layers, size_t count, const char *path, struct aq_error *err);

#endif
