/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - how much of a server one client may have under way */
#include "http/quota.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void quota_init(struct quota *quota, size_t requests_max, size_t bytes_max)
{
    *quota = (struct quota){ .clients = MAP_INIT,
                             .requests_max = requests_max,
                             .bytes_max = bytes_max };
}

void quota_done(struct quota *quota)
{
    for (size_t i = 0; i < quota->clients.count; i++) {
        struct quota_client *client = quota->clients.entries[i].value;

        free(client->name);
        free(client);
    }
    map_done(&quota->clients);
}

static size_t quota_half_of_rest(size_t used, size_t max)
{
    return used < max ? (max - used) / 2 : 0;
}

static struct quota_client *quota_get_client(struct quota *quota, const char *name)
{
    struct quota_client *client = map_gets(&quota->clients, name);

    if (client)
        return client;
    client = aq_alloc(sizeof(*client));
    client->name = aq_strdup(name);
    map_sets(&quota->clients, name, client);
    list_init(&client->ready.link);
    list_init(&client->ready.requests);
    return client;
}

int quota_enter(struct quota *quota, const char *name, struct quota_client **ret,
                struct aq_error *err)
{
    const struct quota_client *known = map_gets(&quota->clients, name);
    size_t has = known ? known->requests : 0;

    if (has >= QUOTA_REQUESTS_LEAST
        && has >= quota_half_of_rest(quota->requests, quota->requests_max))
        return aq_fail_kind(err, EAGAIN, "rate-limit-exceeded",
                            "%zu of your requests are under way; end some of them first", has);
    *ret = quota_get_client(quota, name);
    (*ret)->requests++;
    quota->requests++;
    return 0;
}

bool quota_has_room(const struct quota *quota, const struct quota_client *client, size_t bytes)
{
    size_t has = client ? client->bytes + bytes : 0;

    return bytes <= quota->bytes_max - quota->bytes
           && (has <= QUOTA_BYTES_LEAST
               || has <= quota_half_of_rest(quota->bytes, quota->bytes_max));
}

bool quota_add_bytes(struct quota *quota, struct quota_client *client, size_t bytes)
{
    if (!quota_has_room(quota, client, bytes))
        return false;
    quota->bytes += bytes;
    if (client)
        client->bytes += bytes;
    return true;
}

void quota_leave(struct quota *quota, struct quota_client *client, size_t bytes)
{
    quota->bytes -= bytes;
    if (!client)
        return;
    client->bytes -= bytes;
    quota->requests--;
    if (--client->requests)
        return;
    (void)map_removes(&quota->clients, client->name);
    free(client->name);
    free(client);
}
