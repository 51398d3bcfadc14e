/* SPDX-License-Identifier: Apache-2.0 */
/* service_file.c - see service_file.h */
#include "proxy/service_file.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/strbuf.h"

int service_file_write(const char *state, const struct message *msg, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" SERVICE_FILE, state);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = message_encode(msg, &text, err);

    return r < 0 ? r : fs_write_quick(AT_FDCWD, path, text.data, text.len, 0600, err);
}

int service_file_read(const char *state, struct message *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" SERVICE_FILE, state);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, path, SERVICE_FILE_MAX, &text, err);

    if (r < 0)
        return r;
    if (message_decode(text.data, text.len, ret, NULL) < 0)
        return aq_fail(err, EINVAL, "'%s' is damaged; it is replaced", path);
    if (ret->type == MSG_SERVING_ROUTES)
        return 0;
    message_done(ret);
    return aq_fail(err, EINVAL, "'%s' does not hold model services; it is replaced", path);
}
