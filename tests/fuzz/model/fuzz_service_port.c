/* SPDX-License-Identifier: Apache-2.0 */
/* Service ports of images and sessions: whatever is accepted has names that are
 * safe in JSON and environments, and ports that are allowed, none of them twice.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/service_port.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check(const struct services *s)
{
    size_t ports = 0;

    for (size_t i = 0; i < s->count; i++) {
        require(s->items[i].first == ports && s->items[i].count > 0);
        ports += s->items[i].count;
        for (const char *c = s->items[i].name; *c; c++)
            require((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')
                    || *c == '_' || *c == '-');
    }
    require(ports == s->port_count && ports <= SERVICE_PORTS_MAX);
    for (size_t i = 0; i < ports; i++) {
        require(s->ports[i] >= 1024);
        for (size_t k = 0; k < i; k++)
            require(s->ports[k] != s->ports[i]);
    }
}

/* Two bytes are a port. */
static int add_opened(struct services *services, const char *at, const char *end,
                      struct aq_error *err)
{
    int64_t ports[SERVICE_PORTS_MAX + 1];
    struct int_list list = { .items = ports };

    for (at++; at + 1 < end && list.count <= SERVICE_PORTS_MAX; at += 2)
        ports[list.count++] = (unsigned char)at[0] << 8 | (unsigned char)at[1];
    return services_add_preopen(services, &list, err);
}

/* A label, and after a NUL what a session opens. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct services services = { .count = 0 };
    struct aq_error err = { 0 };
    char *text = malloc(size + 2);
    int r;

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    r = services_add_label(&services, text, &err);
    if (r == 0) {
        check(&services);
        services_mark_endpoints(&services, text);
        r = add_opened(&services, text + strlen(text), text + size, &err);
    }
    require(r == 0 || (err.text[0] && err.field[0]));
    if (r == 0) {
        check(&services);
        services_write(&services, services.ports, &w);
    }
    free(text);
    return 0;
}
