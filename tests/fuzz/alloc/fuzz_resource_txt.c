/* SPDX-License-Identifier: Apache-2.0 */
/* resource.txt: what can be read can be written, and is then read as the same. */
#include <stdint.h>
#include <string.h>

#include "alloc/alloc_map.h"
#include "alloc/resource_txt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A map that knows nothing takes note of the grant and forgets it again. */
static void check_held(const struct alloc_grant *grant)
{
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct alloc_config nothing = { 0 };
    struct jsonw w = jsonw_make(&out);
    struct alloc_device_state state;

    if (alloc_map_new(&nothing, &map, NULL) < 0 || alloc_map_apply(map, grant, NULL) < 0)
        return;
    alloc_map_write_gpu(map, &w);
    if (alloc_map_release(map, grant, NULL) < 0 || alloc_map_device(map, 0, &state))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(resource_txt_donep) struct resource_txt rt = { 0 };
    AQ_CLEANUP(resource_txt_donep) struct resource_txt back = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf first = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf second = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (resource_txt_read((const char *)data, size, NULL, &rt, &err) < 0) {
        if (err.text[0] == '\0')
            __builtin_trap();
        return 0;
    }
    if (rt.grant.count < 1000)
        check_held(&rt.grant);
    if (resource_txt_write(&rt, NULL, &first, NULL) < 0)
        __builtin_trap();
    if (resource_txt_read(first.data, first.len, NULL, &back, NULL) < 0
        || resource_txt_write(&back, NULL, &second, NULL) < 0
        || strcmp(first.data, second.data) != 0)
        __builtin_trap();
    return 0;
}
