/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - the cuda plugin's configuration: reading it, and releasing everything */
#include "cuda/plugin.h"

#include "base/memory.h"
#include "common/conf_file.h"

#define AT(member) offsetof(struct cuda, member)

static const struct conf_item items[] = {
    { "", "library", CONF_STR, AT(library), "libnvidia-ml.so.1", 0, 0, 0, "" },
    { "", "library_folders", CONF_LIST, AT(folders),
      "/usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /usr/lib", 0, 0, 0, "" },
    SHARING_ITEMS(struct cuda, sharing, "fractional", "0", "0"),
    CONF_TABLE_END,
};

int cuda_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
              void **ret)
{
    struct cuda *cuda = aq_alloc(sizeof(*cuda));
    struct aq_error err = { 0 };
    int r = conf_file_read(host, items, cuda, out);

    if (r == 0 && sharing_check(&cuda->sharing, &err) < 0) {
        r = conf_file_refuse(host, &err, out);
        conf_done(items, cuda);
    }
    if (r < 0) {
        free(cuda);
        return r;
    }
    cuda->host = host;
    *ret = cuda;
    return 0;
}

void cuda_close(void *self)
{
    struct cuda *cuda = self;

    cuda_unload(cuda);
    conf_done(items, cuda);
    free(cuda);
}
