/* SPDX-License-Identifier: Apache-2.0 */
/* The managers of a cluster, in the order in which they are tried. */
#include "cli/endpoints.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/opt.h"
#include "http/client.h"

#define SEPARATORS ", \t\n"

static int endpoints_add(struct endpoints *list, const char *text, size_t len, struct aq_error *err)
{
    struct endpoint *item = &list->items[list->count];
    struct url url;

    if (list->count == ENDPOINTS_MAX)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "the endpoint lists more than %d addresses; leave some out",
                            ENDPOINTS_MAX);
    while (len && text[len - 1] == '/')
        len--;
    item->url = aq_strndup(text, len);
    list->count++;
    if (url_parse(item->url, &url, err) < 0) {
        (void)aq_error_wrap(err, "endpoint '%s'", item->url);
        if (err)
            err->kind = CLI_KIND_USAGE;
        return -EINVAL;
    }
    item->address = url.address;
    item->tls = url.tls;
    return 0;
}

int endpoints_read(const char *text, struct endpoints *ret, struct aq_error *err)
{
    int r = 0;

    *ret = (struct endpoints){ .count = 0 };
    for (text += strspn(text, SEPARATORS); r == 0 && *text; text += strspn(text, SEPARATORS)) {
        size_t len = strcspn(text, SEPARATORS);

        r = endpoints_add(ret, text, len, err);
        text += len;
    }
    if (r == 0 && ret->count == 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the endpoint is empty");
    if (r < 0)
        endpoints_done(ret);
    return r;
}

void endpoints_done(struct endpoints *endpoints)
{
    for (size_t i = 0; i < endpoints->count; i++)
        free(endpoints->items[i].url);
    *endpoints = (struct endpoints){ .count = 0 };
}

const struct endpoint *endpoints_get(const struct endpoints *endpoints)
{
    return &endpoints->items[endpoints->at];
}

bool endpoints_is_current(const struct endpoints *endpoints, const struct address *address)
{
    return client_is_same_address(&endpoints_get(endpoints)->address, address);
}

void endpoints_next(struct endpoints *endpoints)
{
    endpoints->at = (endpoints->at + 1) % endpoints->count;
}

bool endpoints_overlap(const char *a, const char *b)
{
    AQ_CLEANUP(endpoints_done) struct endpoints first = { .count = 0 };
    AQ_CLEANUP(endpoints_done) struct endpoints second = { .count = 0 };

    if (endpoints_read(a, &first, NULL) < 0 || endpoints_read(b, &second, NULL) < 0)
        return false;
    for (size_t i = 0; i < first.count; i++)
        for (size_t k = 0; k < second.count; k++)
            if (client_is_same_address(&first.items[i].address, &second.items[k].address))
                return true;
    return false;
}
