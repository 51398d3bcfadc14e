/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - the rocm plugin's configuration */
#include "rocm/plugin.h"

#include "base/memory.h"
#include "common/conf_file.h"

static const struct conf_item items[] = {
    SHARING_ITEMS(struct rocm, sharing, "discrete", "0", "0"),
    CONF_TABLE_END,
};

int rocm_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
              void **ret)
{
    struct rocm *rocm = aq_alloc(sizeof(*rocm));
    struct aq_error err = { 0 };
    int r = conf_file_read(host, items, rocm, out);

    if (r == 0 && sharing_check(&rocm->sharing, &err) < 0) {
        r = conf_file_refuse(host, &err, out);
        conf_done(items, rocm);
    }
    if (r < 0) {
        free(rocm);
        return r;
    }
    rocm->host = host;
    *ret = rocm;
    return 0;
}

void rocm_close(void *self)
{
    conf_done(items, self);
    free(self);
}
