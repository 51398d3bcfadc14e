/* SPDX-License-Identifier: Apache-2.0 */
/* What is spoken on one connection to the web terminal. */
#include "runner/web_wire.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/json_load.h"
#include "base/jsonw.h"
#include "http/websocket_handshake.h"
#include "web_terminal_page.h"

#define SIZE_TEXT_MAX 4096 /* bytes of a message with a size */
#define SIDE_MAX 4096      /* rows or columns */

enum { NORMAL = 1000, PROTOCOL_ERROR = 1002 };

static const struct message_limits web_wire_limits = {
    .line_max = 8192, .head_max = 65536, .headers_max = 200, .body_max = 0
};

int web_wire_init(struct web_wire *wire, struct aq_error *err)
{
    *wire = (struct web_wire){ .request = NULL };
    websocket_frames_init(&wire->frames, true, WEB_MESSAGE_MAX);
    return message_parser_new(true, &web_wire_limits, &wire->request, err);
}

void web_wire_done(struct web_wire *wire)
{
    message_parser_free(wire->request);
    websocket_frames_done(&wire->frames);
}

/* ---- HTTP ---- */

static void web_wire_answer(struct web_wire *wire, int status, const char *headers,
                            const char *type, const void *body, size_t len)
{
    const struct message_head *head = message_get_head(wire->request);
    struct strbuf *out = &wire->frames.out;

    strbuf_addf(out,
                "HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\n"
                "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
                "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
                status, status_text(status), headers, type, len);
    if (!head || head->method != METHOD_HEAD)
        strbuf_add(out, body, len);
    wire->is_over = true;
}

static void web_wire_refuse(struct web_wire *wire, int status, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct jsonw w = jsonw_make(&body);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "title", text);
    jsonw_member_int(&w, "status", status);
    jsonw_object_end(&w);
    web_wire_answer(wire, status, "", "application/problem+json", body.data, body.len);
}

/* "127.0.0.1:8080", "[::1]", "localhost" */
static bool web_wire_is_address(const char *host)
{
    bool is_bracketed = host[0] == '[';
    size_t len = strcspn(host + is_bracketed, is_bracketed ? "]" : ":");
    unsigned char address[sizeof(struct in6_addr)];
    char text[64];

    if (len >= sizeof(text))
        return false;
    memcpy(text, host + is_bracketed, len);
    text[len] = '\0';
    return strcasecmp(text, "localhost") == 0
           || inet_pton(is_bracketed ? AF_INET6 : AF_INET, text, address) == 1;
}

/* NULL if it may have a shell, else why not. */
static const char *web_wire_find_objection(const struct message_head *head)
{
    const char *host = message_get_header(head, "Host");
    const char *origin = message_get_header(head, "Origin");
    const char *page = origin ? strstr(origin, "://") : NULL;

    if (message_get_header(head, "X-Forwarded-Host"))
        return NULL;
    if (!host || !web_wire_is_address(host))
        return "the terminal is opened by an address such as 127.0.0.1, or by aliquot-proxy";
    if (origin && (!page || strcasecmp(page + strlen("://"), host) != 0))
        return "the page is another server's";
    return NULL;
}

static void web_wire_upgrade(struct web_wire *wire, const struct message_head *head)
{
    const char *key = message_get_header(head, "Sec-WebSocket-Key");
    char answer[WEBSOCKET_ACCEPT_MAX];
    struct aq_error err = { 0 };

    if (websocket_check_request(head, &err) < 0 || websocket_answer_key(key, answer, &err) < 0) {
        web_wire_refuse(wire, 400, err.text);
        return;
    }
    strbuf_addf(&wire->frames.out,
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s\r\n",
                answer,
                message_has_token(head, "Sec-WebSocket-Protocol", "tty")
                    ? "Sec-WebSocket-Protocol: tty\r\n"
                    : "");
    wire->is_socket = true;
}

static bool web_wire_is_path(const char *target, const char *path)
{
    size_t len = strcspn(target, "?");

    return len == strlen(path) && memcmp(target, path, len) == 0;
}

static void web_wire_serve(struct web_wire *wire)
{
    static const char token[] = "{\"token\": \"\"}";
    const struct message_head *head = message_get_head(wire->request);
    const char *objection = web_wire_find_objection(head);
    bool is_ws = web_wire_is_path(head->target, "/ws");

    if (head->method != METHOD_GET && head->method != METHOD_HEAD)
        web_wire_refuse(wire, 405, "only GET is answered here");
    else if (web_wire_is_path(head->target, "/"))
        web_wire_answer(wire, 200,
                        "Content-Encoding: gzip\r\n"
                        "Content-Security-Policy: " WEB_TERMINAL_PAGE_POLICY "\r\n",
                        "text/html; charset=utf-8", web_terminal_page, sizeof(web_terminal_page));
    else if (!is_ws && !web_wire_is_path(head->target, "/token"))
        web_wire_refuse(wire, 404, "there is no such page here");
    else if (objection)
        web_wire_refuse(wire, 403, objection);
    else if (is_ws)
        web_wire_upgrade(wire, head);
    else
        web_wire_answer(wire, 200, "", "application/json", token, sizeof(token) - 1);
}

static size_t web_wire_read_request(struct web_wire *wire, const char *bytes, size_t len)
{
    struct message_piece piece;
    struct aq_error err = { 0 };
    ssize_t used = message_feed(wire->request, bytes, len, &piece, &err);

    if (used < 0) {
        web_wire_refuse(wire, 400, err.text);
        return len;
    }
    if (piece.event != MESSAGE_HEAD)
        return (size_t)used;
    web_wire_serve(wire);
    message_parser_free(AQ_TAKE(wire->request));
    return (size_t)used;
}

/* ---- messages ---- */

static uint16_t web_wire_read_side(const json_t *object, const char *name)
{
    json_int_t side = json_integer_value(json_object_get(object, name));

    return side > 0 ? (uint16_t)AQ_MIN(side, SIDE_MAX) : 0;
}

/* False if it is no object. */
static bool web_wire_read_size(const char *bytes, size_t len, struct web_message *ret)
{
    json_auto_t *object = len <= SIZE_TEXT_MAX ? json_load_text(bytes, len, 0, NULL) : NULL;

    ret->cols = web_wire_read_side(object, "columns");
    ret->rows = web_wire_read_side(object, "rows");
    return json_is_object(object);
}

static void web_wire_break(struct web_wire *wire, const char *why)
{
    websocket_frames_close(&wire->frames, PROTOCOL_ERROR, why);
}

static void web_wire_take_first(struct web_wire *wire, const struct websocket_message *message,
                                struct web_message *ret)
{
    if (!web_wire_read_size(message->bytes, message->len, ret)) {
        web_wire_break(wire, "the first message has to be a JSON object");
        return;
    }
    wire->is_open = true;
    ret->kind = WEB_OPEN;
}

/* What is unknown is passed over, as ttyd does. */
static void web_wire_take(struct web_wire *wire, const struct websocket_message *message,
                          struct web_message *ret)
{
    const char *bytes = message->bytes + 1;
    size_t len = message->len ? message->len - 1 : 0;

    switch (message->len ? message->bytes[0] : '\0') {
    case '0':
        *ret = (struct web_message){ .kind = WEB_INPUT, .bytes = bytes, .len = len };
        break;
    case '1':
        if (web_wire_read_size(bytes, len, ret))
            ret->kind = WEB_RESIZE;
        else
            web_wire_break(wire, "a size has to be a JSON object");
        break;
    case '2':
        ret->kind = WEB_PAUSE;
        break;
    case '3':
        ret->kind = WEB_RESUME;
        break;
    default:
        break;
    }
}

size_t web_wire_read(struct web_wire *wire, const char *bytes, size_t len, struct web_message *ret)
{
    struct websocket_message message = { .bytes = NULL };
    size_t used;

    *ret = (struct web_message){ .kind = WEB_NOTHING };
    if (wire->is_over)
        return len;
    if (wire->request)
        return web_wire_read_request(wire, bytes, len);
    used = websocket_frames_read(&wire->frames, bytes, len, &message);
    if (message.bytes && wire->is_open)
        web_wire_take(wire, &message, ret);
    else if (message.bytes)
        web_wire_take_first(wire, &message, ret);
    wire->is_over = websocket_frames_is_over(&wire->frames);
    return used;
}

void web_wire_add(struct web_wire *wire, char kind, const char *bytes, size_t len)
{
    char message[1 + WEB_OUTPUT_MAX] = { kind };

    len = AQ_MIN(len, (size_t)WEB_OUTPUT_MAX);
    memcpy(message + 1, bytes, len);
    websocket_frames_add(&wire->frames, WEBSOCKET_BINARY, message, 1 + len);
}

void web_wire_close(struct web_wire *wire, const char *why)
{
    websocket_frames_close(&wire->frames, NORMAL, why);
}
