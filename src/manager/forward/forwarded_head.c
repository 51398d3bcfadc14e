/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of requests and answers that are passed on. */
#include <strings.h>

#include "manager/forward/forward_internal.h"

bool forwarded_is_websocket(const struct request *req)
{
    const struct message_head *head = request_get_head(req);

    return head->is_upgrade && message_has_token(head, "Upgrade", "websocket");
}

/* Headers of one connection, or written for the connection between managers. */
static bool forwarded_is_own_header(const struct message_head *head, const char *name)
{
    return message_is_hop_header(head, name) || strcasecmp(name, "Host") == 0
           || strcasecmp(name, "Expect") == 0 || strcasecmp(name, SERVER_CLIENT_HEADER) == 0;
}

static void forwarded_add_header(struct strbuf *out, const char *name, const char *value)
{
    strbuf_adds(out, name);
    strbuf_add(out, ": ", 2);
    strbuf_adds(out, value);
    strbuf_add(out, "\r\n", 2);
}

void forwarded_write_headers(const struct forwarded *fw, bool expects_continue, struct strbuf *out)
{
    const struct message_head *head = request_get_head(fw->req);

    for (size_t i = 0; i < head->header_count; i++)
        if (!forwarded_is_own_header(head, head->headers[i].name))
            forwarded_add_header(out, head->headers[i].name, head->headers[i].value);
    forwarded_add_header(out, SERVER_CLIENT_HEADER, request_get_address(fw->req));
    if (forwarded_is_websocket(fw->req))
        strbuf_adds(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    if (expects_continue)
        strbuf_adds(out, "Expect: 100-continue\r\n");
}

void forwarded_add_upgrade_headers(struct request *req, const struct message_head *head)
{
    for (size_t i = 0; i < head->header_count; i++) {
        const char *name = head->headers[i].name;

        if (!message_is_hop_header(head, name) && strcasecmp(name, "Date") != 0
            && strcasecmp(name, "Server") != 0) /* which request_upgrade() adds */
            request_add_header(req, name, head->headers[i].value);
    }
}
