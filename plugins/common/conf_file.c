/* SPDX-License-Identifier: Apache-2.0 */
/* conf_file.c - reading a plugin's settings, with its errors told to the host */
#include "common/conf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"

int conf_file_read(const struct aq_accelerator_host *host, const struct conf_item *items,
                   void *target, const struct aq_accelerator_out *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct aq_error err = { 0 };
    int r = host->config ? fs_read(AT_FDCWD, host->config, CONF_FILE_MAX, &text, &err) : 0;

    if (r == 0)
        r = conf_load_text(items, host->config ? host->config : "", text.data, text.len, target,
                           &err);
    if (r < 0 && host->config && !strstr(err.text, host->config))
        (void)aq_error_wrap(&err, "%s", host->config); /* of what is missing in all of it */
    if (r < 0)
        out->error(out->data, err.text);
    return r;
}

int conf_file_refuse(const struct aq_accelerator_host *host, const struct aq_error *why,
                     const struct aq_accelerator_out *out)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "%.180s%s%s", host->config ? host->config : "",
                   host->config ? ": " : "", why->text);
    out->error(out->data, text);
    return -EINVAL;
}
