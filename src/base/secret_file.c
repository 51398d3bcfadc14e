/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file.c - see secret_file.h */
#include "base/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"

int secret_file_read(const char *path, struct strbuf *out, struct aq_error *err)
{
    int r = fs_read(AT_FDCWD, path, SECRET_FILE_MAX, out, err);

    if (r < 0)
        return r;
    while (out->len && strchr("\r\n\t ", out->data[out->len - 1]))
        strbuf_truncate(out, out->len - 1);
    for (size_t i = 0; i < out->len; i++)
        if ((unsigned char)out->data[i] < ' ')
            return aq_fail(err, EINVAL, "'%s' has a control character; it must hold one line",
                           path);
    return 0;
}
