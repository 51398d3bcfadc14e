/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file.h - passwords and tokens that settings name a file for */
#ifndef AQ_BASE_SECRET_FILE_H
#define AQ_BASE_SECRET_FILE_H

#include "base/error.h"
#include "base/strbuf.h"

#define SECRET_FILE_MAX 4096 /* bytes */

/* Append the one line of the file, without the blanks behind it. -EINVAL for control characters in
 * it, -EFBIG, -ENOENT etc.
 */
int secret_file_read(const char *path, struct strbuf *out, struct aq_error *err);

#endif
