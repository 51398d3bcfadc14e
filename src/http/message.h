/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - HTTP/1.x messages read strictly
 *
 * Feeds on bytes, gives a head, body pieces and an end. The head is kept in
 * the parser's own memory with every name and value NUL-terminated in place,
 * until message_reset(). Whatever two readers could understand differently is
 * refused: Content-Length beside Transfer-Encoding, any coding but one
 * "chunked", bare CR or LF, folded lines, a second Host, Content-Length and
 * the like, blanks before a colon or around the target, control characters.
 */
#ifndef AQ_HTTP_MESSAGE_H
#define AQ_HTTP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

enum method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_PATCH,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHOD_COUNT,
    METHOD_OTHER = METHOD_COUNT, /* known to HTTP, served by nobody here */
};

const char *method_name(enum method method); /* "GET" */
/* METHOD_OTHER if it is none of ours. Case matters. */
enum method method_parse(const char *name);

/* Text of a status code, "" if unknown. */
const char *status_text(int status);

struct message_limits {
    size_t line_max;      /* bytes of the first line; 414 */
    size_t head_max;      /* bytes of first line and headers; 431 */
    unsigned headers_max; /* header lines; 431 */
    uint64_t body_max;    /* decoded bytes of the body; 413 */
};

extern const struct message_limits message_limits_default; /* 8 KiB, 32 KiB, 100, 8 MiB */

struct message_header {
    const char *name, *value; /* outer blanks of the value are gone */
};

struct message_head {
    enum method method;      /* request */
    const char *method_text; /* request: as on the request line; static */
    const char *target;      /* request: as on the request line */
    int status;              /* response */
    bool is_http10;
    bool keep_alive;      /* what version and Connection say */
    bool expect_continue; /* request: Expect: 100-continue */
    bool is_upgrade;      /* Connection: upgrade and an Upgrade header are there */
    bool is_chunked;
    bool until_close;        /* response whose body ends with the connection */
    uint64_t content_length; /* 0 without one */
    const struct message_header *headers;
    size_t header_count;
};

/* Case-insensitive; the first of that name or NULL. */
const char *message_get_header(const struct message_head *head, const char *name);

/* Is a header of that name only for the connection that the message comes by, or about how its body
 * is framed? Who passes a message on says these anew.
 */
bool message_is_hop_header(const struct message_head *head, const char *name);

/* Does the comma-separated header have this token (both case-insensitive)? */
bool message_has_token(const struct message_head *head, const char *name, const char *token);

enum message_event {
    MESSAGE_MORE, /* all bytes were used and more are needed */
    MESSAGE_HEAD, /* message_get_head() is there */
    MESSAGE_BODY, /* a piece of the body, within the bytes given */
    MESSAGE_END,  /* the message is complete */
};

struct message_piece {
    enum message_event event;
    const char *bytes;
    size_t len;
};

struct message_parser;

/* 'is_request' or response. -ENOMEM. */
int message_parser_new(bool is_request, const struct message_limits *limits,
                       struct message_parser **ret, struct aq_error *err);
void message_parser_free(struct message_parser *p);
AQ_DEFINE_CLEANUP(struct message_parser, message_parser_free)

/* Read bytes up to the next event. Returns how many were used, or -errno with
 * err->kind a problem slug (problem.h): the connection is then good for one
 * answer and a close. After MESSAGE_HEAD the next call may have no bytes and
 * still give MESSAGE_END. After MESSAGE_END message_reset() comes first.
 */
ssize_t message_feed(struct message_parser *p, const char *bytes, size_t len,
                     struct message_piece *ret, struct aq_error *err) AQ_UNTRUSTED;

/* The peer sent its last byte: 0 if that ends the message or none had begun,
 * -EPROTO in the middle of one.
 */
int message_finish(struct message_parser *p, struct aq_error *err);

/* Forget the message, keep (a little of) the memory. */
void message_reset(struct message_parser *p);

bool message_has_begun(const struct message_parser *p); /* at least one byte of a head */
const struct message_head *message_get_head(const struct message_parser *p);

/* After MESSAGE_HEAD: another limit than limits.body_max. */
void message_set_body_max(struct message_parser *p, uint64_t body_max);
/* After MESSAGE_HEAD: the answer to a HEAD request has no body, whatever its
 * head says.
 */
void message_skip_body(struct message_parser *p);

#endif
