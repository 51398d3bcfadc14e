/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint_record.c - the file 'record' of an endpoint */
#include "agent/net/endpoint_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void endpoint_record_add(struct strbuf *out, const struct endpoint_record *record)
{
    char id[UUID_TEXT_MAX];

    strbuf_addf(out, "session %s\nnumber %" PRIu32 "\nhostname %s\n",
                uuid_format(&record->session_id, id), record->number, record->hostname);
    for (size_t i = 0; i < record->port_count; i++)
        strbuf_addf(out, "port %u %u\n", record->ports[i].inside, record->ports[i].outside);
    strbuf_adds(out, "end\n");
}

static int endpoint_record_parse_line(const char *line, struct endpoint_record *r, unsigned *seen)
{
    unsigned inside, outside;
    char id[UUID_TEXT_MAX];
    char rest;

    if (sscanf(line, "session %36s%c", id, &rest) == 1 && uuid_parse(id, &r->session_id) == 0)
        *seen |= 1u;
    else if (sscanf(line, "number %" SCNu32 "%c", &r->number, &rest) == 1)
        *seen |= 2u;
    else if (sscanf(line, "hostname %63s%c", r->hostname, &rest) == 1)
        *seen |= 4u;
    else if (sscanf(line, "port %u %u%c", &inside, &outside, &rest) == 2 && inside <= UINT16_MAX
             && outside <= UINT16_MAX && r->port_count < NET_PORTS_MAX)
        r->ports[r->port_count++] = (struct net_port){ (uint16_t)inside, (uint16_t)outside };
    else if (strcmp(line, "end") == 0)
        *seen |= 8u;
    else
        return -EINVAL;
    return 0;
}

int endpoint_record_parse(const char *text, struct endpoint_record *ret, struct aq_error *err)
{
    struct endpoint_record r = { .number = 0 };
    unsigned seen = 0;
    char line[128];

    while (*text) {
        size_t len = strcspn(text, "\n");

        (void)snprintf(line, sizeof(line), "%.*s", (int)len, text);
        if (len >= sizeof(line) || endpoint_record_parse_line(line, &r, &seen) < 0)
            return aq_fail(err, EINVAL, "the record of a network has a line '%.40s'", line);
        text += len + (text[len] == '\n');
    }
    if (seen != 15u)
        return aq_fail(err, EINVAL, "the record of a network is cut off");
    *ret = r;
    return 0;
}
