/* message.h - HTTP/1.x messages read strictly
 *
 * Feeds on bytes, gives a head, body pieces and an end. The head is kept in
 * the parser's own memory with every name and value NUL-terminated in place,
 * until message_reset(). What could be read in two ways is refused: see
 * message.c for the list.
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
    const char *target;      /* request: as on the request line */
    int status;              /* response */
    bool is_http10;
    bool keep_alive;         /* what version and Connection say */
    bool expect_continue;    /* request: Expect: 100-continue */
    bool is_upgrade;         /* Connection: upgrade and an Upgrade header are there */
    bool is_chunked;
    bool until_close;        /* response whose body ends with the connection */
    uint64_t content_length; /* 0 without one */
    const struct message_header *headers;
    size_t header_count;
};

/* Case-insensitive; the first of that name or NULL. */
const char *message_get_header(const struct message_head *head, const char *name);

/* Does the comma-separated header have this token (both case-insensitive)? */
bool message_has_token(const struct message_head *head, const char *name, const char *token);

struct message_ops {
    /* The head is complete. May set message_set_body_max() or, for a response,
     * message_skip_body(). Nonzero stops: message_feed() returns it.
     */
    int (*on_head)(void *data, const struct message_head *head);
    int (*on_body)(void *data, const char *bytes, size_t len);
    /* The message is complete; message_feed() returns after this. */
    int (*on_end)(void *data);
};

struct message_parser;

/* 'is_request' or response. -ENOMEM. */
int message_parser_new(bool is_request, const struct message_limits *limits,
                       const struct message_ops *ops, void *data, struct message_parser **ret,
                       struct aq_error *err);
void message_parser_free(struct message_parser *p);
AQ_DEFINE_CLEANUP(struct message_parser, message_parser_free)

/* Read bytes up to the end of one message at most. Returns how many were
 * used, or -errno with err->kind a problem slug (problem.h): the connection
 * is then good for one answer and a close. After an end message_reset() must
 * come before more is fed. A nonzero callback result is returned as it is.
 */
ssize_t message_feed(struct message_parser *p, const char *bytes, size_t len,
                     struct aq_error *err) AQ_UNTRUSTED;

/* The peer sent its last byte. 0 if that ends the message (on_end() is
 * called) or none had begun, -EPROTO in the middle of one.
 */
int message_finish(struct message_parser *p, struct aq_error *err);

/* Forget the message, keep (a little of) the memory. */
void message_reset(struct message_parser *p);

bool message_has_begun(const struct message_parser *p); /* at least one byte of a head */
bool message_is_complete(const struct message_parser *p);
const struct message_head *message_get_head(const struct message_parser *p);

void message_set_body_max(struct message_parser *p, uint64_t body_max);
/* The answer to a HEAD request has no body whatever its head says. */
void message_skip_body(struct message_parser *p);

#endif
