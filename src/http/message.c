/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.x messages read strictly. */
#include "http/message.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <http_parser.h>

#include "base/vec.h"
#include "http/message_body.h"

#define KEEP_HEAD 1024 /* bytes of head memory that a waiting parser keeps */
#define KEEP_HEADERS 32

const struct message_limits message_limits_default = {
    .line_max = 8192,
    .head_max = 32768,
    .headers_max = 100,
    .body_max = UINT64_C(8) << 20,
};

enum phase { PHASE_HEAD, PHASE_BODY, PHASE_DONE, PHASE_FAILED };

struct message_parser {
    bool is_request;
    enum phase phase;
    struct message_limits limits;
    struct strbuf raw; /* the head as it came; later cut up by NULs */
    size_t line_start; /* of the line being collected */
    unsigned lines;
    bool skipped_blank; /* one empty line before the first is forgiven */
    struct message_header *headers;
    size_t header_cap;
    struct message_head head;
    size_t target_len;
    struct body_reader body;
};

static const char *const method_names[METHOD_COUNT] = {
    [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",   [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT",         [METHOD_PATCH] = "PATCH", [METHOD_DELETE] = "DELETE",
    [METHOD_OPTIONS] = "OPTIONS",
};

const char *method_name(enum method method)
{
    return method < METHOD_COUNT ? method_names[method] : "OTHER";
}

enum method method_parse(const char *name)
{
    for (unsigned i = 0; i < METHOD_COUNT; i++)
        if (!strcmp(name, method_names[i]))
            return (enum method)i;
    return METHOD_OTHER;
}

const char *status_text(int status)
{
    switch (status) {
#define XX(num, name, string) \
    case num:                 \
        return #string;
        HTTP_STATUS_MAP(XX)
#undef XX
    default:
        return "";
    }
}

/* Most lookups fail on the first letter. */
static bool message_same_name(const char *a, const char *b)
{
    return ((*a ^ *b) & ~0x20) == 0 && !strcasecmp(a, b);
}

const char *message_get_header(const struct message_head *head, const char *name)
{
    for (size_t i = 0; i < head->header_count; i++)
        if (message_same_name(head->headers[i].name, name))
            return head->headers[i].value;
    return NULL;
}

bool message_has_token(const struct message_head *head, const char *name, const char *token)
{
    size_t len = strlen(token);

    for (size_t i = 0; i < head->header_count; i++) {
        if (!message_same_name(head->headers[i].name, name))
            continue;
        for (const char *p = head->headers[i].value; *p;) {
            size_t n = strcspn(p, ", \t");

            if (n == len && !strncasecmp(p, token, len))
                return true;
            p += n + strspn(p + n, ", \t");
        }
    }
    return false;
}

bool message_is_hop_header(const struct message_head *head, const char *name)
{
    static const char *const names[] = {
        "Connection", "Content-Length", "Keep-Alive",        "Proxy-Connection",
        "TE",         "Trailer",        "Transfer-Encoding", "Upgrade"
    };

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (message_same_name(name, names[i]))
            return true;
    return message_has_token(head, "Connection", name);
}

int message_parser_new(bool is_request, const struct message_limits *limits,
                       struct message_parser **ret, struct aq_error *err)
{
    struct message_parser *p = calloc(1, sizeof(*p));

    if (!p)
        return aq_fail_oom(err);
    p->is_request = is_request;
    p->limits = *limits;
    strbuf_init(&p->raw);
    *ret = p;
    return 0;
}

void message_parser_free(struct message_parser *p)
{
    if (!p)
        return;
    strbuf_done(&p->raw);
    free(p->headers);
    free(p);
}

void message_reset(struct message_parser *p)
{
    if (p->raw.cap > KEEP_HEAD)
        strbuf_done(&p->raw);
    else
        strbuf_clear(&p->raw);
    if (p->header_cap > KEEP_HEADERS) {
        free(p->headers);
        p->headers = NULL;
        p->header_cap = 0;
    }
    p->phase = PHASE_HEAD;
    p->line_start = 0;
    p->lines = 0;
    p->skipped_blank = false;
    p->head = (struct message_head){ .status = 0 };
}

bool message_has_begun(const struct message_parser *p)
{
    return p->raw.len > 0;
}

const struct message_head *message_get_head(const struct message_parser *p)
{
    return &p->head;
}

void message_set_body_max(struct message_parser *p, uint64_t body_max)
{
    p->body.max = body_max;
}

void message_skip_body(struct message_parser *p)
{
    p->body.state = BODY_DONE;
}

static int message_fail_bad(struct aq_error *err, const char *what)
{
    return aq_fail_kind(err, EBADMSG, "generic-bad-request", "malformed HTTP: %s", what);
}

/* ---- collecting the head ---- */

/* A whole line, with its line break, has come. Returns 1 if it ends the head. */
static int message_check_line(struct message_parser *p, struct aq_error *err)
{
    const unsigned char *line = (const unsigned char *)p->raw.data + p->line_start;
    size_t len = p->raw.len - p->line_start;

    if (len < 2 || line[len - 2] != '\r')
        return message_fail_bad(err, "a line ends in LF without CR");
    len -= 2;
    if (!len && !p->lines) {
        if (p->skipped_blank)
            return message_fail_bad(err, "empty lines before the first line");
        p->skipped_blank = true;
        strbuf_clear(&p->raw);
        return 0;
    }
    if (!len)
        return 1;
    if (line[0] == ' ' || line[0] == '\t')
        return message_fail_bad(err, "a folded header line");
    for (size_t i = 0; i < len; i++)
        if ((line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
            return message_fail_bad(err, "a control character in the head");
    if (p->lines++ > p->limits.headers_max)
        return aq_fail_kind(err, EMSGSIZE, "head-too-large", "more than %u header lines",
                            p->limits.headers_max);
    p->line_start = p->raw.len;
    return 0;
}

static int message_check_size(const struct message_parser *p, struct aq_error *err)
{
    if (!p->lines && p->raw.len > p->limits.line_max)
        return aq_fail_kind(err, EMSGSIZE, "uri-too-long", "the first line has more than %zu bytes",
                            p->limits.line_max);
    if (p->raw.len > p->limits.head_max)
        return aq_fail_kind(err, EMSGSIZE, "head-too-large", "the head has more than %zu bytes",
                            p->limits.head_max);
    return 0;
}

/* Take lines until the empty one. Returns the bytes used; *ret_complete tells. */
static ssize_t message_collect_head(struct message_parser *p, const char *bytes, size_t len,
                                    bool *ret_complete, struct aq_error *err)
{
    size_t used = 0;
    int r = 0;

    while (!r && used < len) {
        const char *lf = memchr(bytes + used, '\n', len - used);
        size_t n = lf ? (size_t)(lf + 1 - (bytes + used)) : len - used;

        strbuf_add(&p->raw, bytes + used, AQ_MIN(n, p->limits.head_max + 1));
        if (!strbuf_ok(&p->raw))
            return aq_fail_oom(err);
        used += n;
        r = message_check_size(p, err);
        if (!r && lf)
            r = message_check_line(p, err);
    }
    if (r < 0)
        return r;
    *ret_complete = r > 0;
    return (ssize_t)used;
}

/* ---- cutting it up ---- */

static int message_on_url(http_parser *hp, const char *at, size_t len)
{
    struct message_parser *p = hp->data;

    p->head.target = at;
    p->target_len = len;
    return 0;
}

static int message_on_field(http_parser *hp, const char *at, size_t len)
{
    struct message_parser *p = hp->data;

    /* The lenient build of http_parser takes a blank for part of the name. */
    if (memchr(at, ' ', len) || at[len] != ':'
        || !vec_grow(&p->headers, &p->header_cap, p->head.header_count + 1, sizeof(*p->headers)))
        return -1;
    p->headers[p->head.header_count++] = (struct message_header){ .name = at, .value = "" };
    return 0;
}

static int message_on_value(http_parser *hp, const char *at, size_t len)
{
    struct message_parser *p = hp->data;

    if (len)
        p->headers[p->head.header_count - 1].value = at;
    return 0;
}

static int message_on_headers_complete(http_parser *hp)
{
    (void)hp;
    return 2; /* no body: it is read by body_read() */
}

static const http_parser_settings settings = {
    .on_url = message_on_url,
    .on_header_field = message_on_field,
    .on_header_value = message_on_value,
    .on_headers_complete = message_on_headers_complete,
};

/* "METHOD target HTTP/1.x" with one blank between, nothing else. */
static int message_check_request_line(const struct message_parser *p, const char *method,
                                      size_t line_len, struct aq_error *err)
{
    size_t method_len = strlen(method);
    const char *line = p->raw.data;

    if (!p->head.target || line_len != method_len + p->target_len + sizeof("  HTTP/1.1") - 1
        || strncmp(line, method, method_len) || line[method_len] != ' '
        || p->head.target != line + method_len + 1)
        return message_fail_bad(err, "the request line is not 'METHOD target HTTP/1.1'");
    for (size_t i = 0; i < p->target_len; i++)
        if (p->head.target[i] <= 0x20 || p->head.target[i] >= 0x7f || p->head.target[i] == '#')
            return message_fail_bad(err, "a character in the target that must be escaped");
    if (p->head.target[0] != '/' && !(p->target_len == 1 && p->head.target[0] == '*'))
        return message_fail_bad(err, "the target does not begin with '/'");
    return 0;
}

/* "HTTP/1.x 200" and nothing or a blank and text. */
static int message_check_status_line(const struct message_parser *p, size_t line_len,
                                     struct aq_error *err)
{
    const char *line = p->raw.data;

    if (line_len < 12 || strncmp(line, "HTTP/1.", 7) || line[8] != ' '
        || (line_len > 12 && line[12] != ' ') || p->head.status < 100 || p->head.status > 599)
        return message_fail_bad(err, "the status line is not 'HTTP/1.1 NNN text'");
    return 0;
}

/* Put a NUL after the target, each name and each value. */
static void message_cut_up(struct message_parser *p)
{
    char *base = p->raw.data;

    if (p->is_request)
        base[p->head.target - base + (ptrdiff_t)p->target_len] = '\0';
    for (size_t i = 0; i < p->head.header_count; i++) {
        struct message_header *h = &p->headers[i];
        char *colon = base + (strchr(h->name, ':') - base), *end;

        *colon = '\0';
        if (!*h->value)
            continue;
        end = base + (strchr(h->value, '\r') - base);
        while (end[-1] == ' ' || end[-1] == '\t')
            end--;
        *end = '\0';
    }
    p->head.headers = p->headers;
}

static int message_parse_length(const char *text, uint64_t *ret, struct aq_error *err)
{
    uint64_t value = 0;
    size_t len = strspn(text, "0123456789");

    if (!len || text[len] || len > 18)
        return message_fail_bad(err, "Content-Length is not a number");
    for (; *text; text++)
        value = value * 10 + (unsigned)(*text - '0');
    *ret = value;
    return 0;
}

/* Headers of which a second one would leave open which one counts. */
static const char *const single_headers[] = {
    "Authorization",
    "Content-Length",
    "Content-Type",
    "Date",
    "Expect",
    "Host",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Version",
    "Transfer-Encoding",
    "Upgrade",
    "X-BackendAI-Date",
    "X-BackendAI-Version",
    "X-Method-Override",
    "X-Sorna-Date",
    "X-Sorna-Version",
};

static int message_check_single(const struct message_head *head, struct aq_error *err)
{
    uint32_t seen = 0;

    for (size_t i = 0; i < head->header_count; i++)
        for (unsigned k = 0; k < AQ_COUNT(single_headers); k++) {
            if (!message_same_name(head->headers[i].name, single_headers[k]))
                continue;
            if (seen & 1u << k)
                return aq_fail_kind(err, EBADMSG, "generic-bad-request",
                                    "malformed HTTP: more than one %s header", single_headers[k]);
            seen |= 1u << k;
        }
    return 0;
}

static int message_check_request_headers(struct message_head *head, struct aq_error *err)
{
    const char *host = message_get_header(head, "Host");
    const char *expect = message_get_header(head, "Expect");

    if (!host && !head->is_http10)
        return message_fail_bad(err, "no Host header");
    if (host && (!*host || strpbrk(host, " \t,/?#@\\\"<>")))
        return message_fail_bad(err, "the Host header is not a host");
    if (expect && strcasecmp(expect, "100-continue"))
        return aq_fail_kind(err, EINVAL, "expectation-failed", "cannot fulfil 'Expect: %.40s'",
                            expect);
    head->expect_continue = expect && !head->is_http10;
    return 0;
}

/* How the body is framed. */
static int message_check_framing(struct message_parser *p, struct aq_error *err)
{
    struct message_head *head = &p->head;
    const char *length = message_get_header(head, "Content-Length");
    const char *coding = message_get_header(head, "Transfer-Encoding");
    bool bodiless = !p->is_request
                    && (head->status < 200 || head->status == 204 || head->status == 304);

    if (coding && length)
        return message_fail_bad(err, "Content-Length and Transfer-Encoding together");
    if (coding && (strcasecmp(coding, "chunked") || head->is_http10))
        return message_fail_bad(err, "a Transfer-Encoding other than 'chunked'");
    if (length) {
        int r = message_parse_length(length, &head->content_length, err);

        if (r < 0)
            return r;
    }
    head->is_chunked = coding && !bodiless;
    head->until_close = !p->is_request && !coding && !length && !bodiless;
    p->body = (struct body_reader){ .state = BODY_DONE, .max = p->limits.body_max };
    if (head->is_chunked)
        p->body.state = BODY_CHUNK_SIZE;
    else if (head->until_close)
        p->body.state = BODY_UNTIL_CLOSE;
    else if (head->content_length && !bodiless) {
        p->body.state = BODY_LENGTH;
        p->body.left = head->content_length;
    }
    return 0;
}

static int message_fail_parser(const http_parser *hp, struct aq_error *err)
{
    enum http_errno code = HTTP_PARSER_ERRNO(hp);

    if (code == HPE_CB_header_field)
        return message_fail_bad(err, "a header name with a blank");
    return aq_fail_kind(err, EBADMSG, "generic-bad-request", "malformed HTTP: %s",
                        http_errno_description(code));
}

static int message_parse_head(struct message_parser *p, struct aq_error *err)
{
    size_t line_len = strcspn(p->raw.data, "\r");
    struct message_head *head = &p->head;
    http_parser hp;
    int r;

    http_parser_init(&hp, p->is_request ? HTTP_REQUEST : HTTP_RESPONSE);
    hp.data = p;
    if (http_parser_execute(&hp, &settings, p->raw.data, p->raw.len) != p->raw.len || hp.http_errno)
        return message_fail_parser(&hp, err);
    if (hp.http_major != 1 || hp.http_minor > 1)
        return aq_fail_kind(err, EPROTO, "http-version-not-supported", "HTTP/%u.%u is not HTTP/1.1",
                            hp.http_major, hp.http_minor);
    head->is_http10 = !hp.http_minor;
    if (p->is_request) {
        r = message_check_request_line(p, http_method_str(hp.method), line_len, err);
        head->method_text = http_method_str(hp.method);
        head->method = method_parse(head->method_text);
    } else {
        head->status = hp.status_code;
        r = message_check_status_line(p, line_len, err);
    }
    if (r < 0)
        return r;
    message_cut_up(p);
    head->keep_alive = head->is_http10 ? message_has_token(head, "Connection", "keep-alive")
                                       : !message_has_token(head, "Connection", "close");
    head->is_upgrade = message_has_token(head, "Connection", "upgrade")
                       && message_get_header(head, "Upgrade");
    r = message_check_single(head, err);
    if (r == 0 && p->is_request)
        r = message_check_request_headers(head, err);
    return r < 0 ? r : message_check_framing(p, err);
}

static ssize_t message_feed_head(struct message_parser *p, const char *bytes, size_t len,
                                 struct message_piece *ret, struct aq_error *err)
{
    bool complete = false;
    ssize_t used = message_collect_head(p, bytes, len, &complete, err);
    int r;

    if (used < 0)
        return used;
    *ret = (struct message_piece){ complete ? MESSAGE_HEAD : MESSAGE_MORE, NULL, 0 };
    if (!complete)
        return used;
    r = message_parse_head(p, err);
    if (r < 0)
        return r;
    p->phase = PHASE_BODY;
    return used;
}

/* A length announced is checked before the first byte of the body. */
static int message_check_announced(const struct message_parser *p, struct aq_error *err)
{
    if (p->body.state == BODY_LENGTH && p->body.left > p->body.max - p->body.total)
        return aq_fail_kind(err, EFBIG, "request-too-large",
                            "the body has %llu bytes, more than the %llu allowed",
                            (unsigned long long)p->body.left, (unsigned long long)p->body.max);
    return 0;
}

ssize_t message_feed(struct message_parser *p, const char *bytes, size_t len,
                     struct message_piece *ret, struct aq_error *err)
{
    ssize_t used;

    switch (p->phase) {
    case PHASE_HEAD:
        used = message_feed_head(p, bytes, len, ret, err);
        if (used < 0)
            p->head = (struct message_head){ .status = 0 }; /* half cut up */
        break;
    case PHASE_BODY:
        used = message_check_announced(p, err);
        if (used == 0)
            used = body_read(&p->body, bytes, len, ret, err);
        break;
    default:
        used = message_fail_bad(err, "bytes after the end");
        break;
    }
    if (used < 0)
        p->phase = PHASE_FAILED;
    else if (ret->event == MESSAGE_END)
        p->phase = PHASE_DONE;
    return used;
}

int message_finish(struct message_parser *p, struct aq_error *err)
{
    bool in_head = p->phase == PHASE_HEAD && (p->raw.len || p->skipped_blank);

    if (in_head
        || (p->phase == PHASE_BODY && p->body.state != BODY_UNTIL_CLOSE
            && p->body.state != BODY_DONE))
        return aq_fail(err, EPROTO, "the connection ended in the middle of a message");
    return 0;
}
