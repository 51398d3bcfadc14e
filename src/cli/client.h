/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - signed requests to the manager
 *
 * The connection is made by the first request. Of several endpoints of the configuration the one that
 * answered last is asked; when it does not answer, or what is in front of it answers 502, 503 or 504,
 * the next one is asked from then on. A request itself is sent again where that cannot do it twice:
 * one that was not sent, one that only reads, and one with an Idempotency-Key. Others fail, with a
 * hint that they may have been done.
 */
#ifndef AQ_CLI_CLIENT_H
#define AQ_CLI_CLIENT_H

#include "base/strbuf.h"
#include "cli/cli.h"
#include "http/client.h"
#include "http/client_sync.h"
#include "http/sse.h"
#include "http/websocket.h"

void cli_client_free(struct cli_client *client);

/* Send 'body' (NULL = none) and read the JSON answer into *ret (the caller's;
 * ret may be NULL). 'path' begins with '/' and is ready for the wire. A
 * problem document becomes an error with its slug as kind.
 */
int cli_call(struct cli *cli, enum method method, const char *path, const json_t *body,
             json_t **ret, struct aq_error *err);

/* The same of a POST that makes something, which is made once: if the connection is lost
 * before the answer, it is asked again for a minute, and standard error says so. Only for
 * routes that take an Idempotency-Key; from a manager of an earlier version, which refuses that for
 * this route, the request is asked once without it.
 */
int cli_call_once(struct cli *cli, const char *path, const json_t *body, json_t **ret,
                  struct aq_error *err);

/* Send 'body' (NULL = none) and take the answer as it is, whatever its status. */
int cli_fetch(struct cli *cli, enum method method, const char *path, const char *body,
              struct client_reply *reply, struct aq_error *err);

/* The same, and the body of a success is given to 'on_body' as it comes, if there is one. */
int cli_fetch_body(struct cli *cli, enum method method, const char *path, const char *body,
                   client_sync_body_fn *on_body, void *data, struct client_reply *reply,
                   struct aq_error *err);

/* 0, or the error that an answer is which is no success. */
int cli_check_status(const struct cli *cli, const struct client_reply *reply, struct aq_error *err);

/* So many rows of any list come in one answer, ... */
#define CLI_PAGE 1000
/* ... and so many of sessions without their texts (docs/rest.md). */
#define CLI_PAGE_OF_SHORT_ROWS 20000

/* All rows of a list: asks for pages of "path" (which may have a query) of 'page' rows
 * until 'limit' rows (0 = all) have come; *ret_total is how many there are.
 */
int cli_call_list(struct cli *cli, const char *path, size_t page, size_t limit, json_t **ret,
                  size_t *ret_total, struct aq_error *err);

/* Takes the text of a page, {"items": [...], "total": N}: 0, or -errno. It is called with
 * what has come so far, each time with more at the end, and at last once with all
 * ('is_whole'): then it sets what it returns.
 */
typedef int cli_page_fn(void *data, const char *text, size_t len, bool is_whole, size_t *ret_rows,
                        size_t *ret_total, struct aq_error *err);

/* The same with each page given to 'take'. */
int cli_call_pages(struct cli *cli, const char *path, size_t page, size_t limit, cli_page_fn *take,
                   void *data, size_t *ret_total, struct aq_error *err);

/* Fill 'err' for an answer that is not what was to be expected. */
int cli_fail_answer(const struct cli *cli, const char *why, struct aq_error *err);

/* As cli_call(), with the answer given to 'on_body' as it comes; returns its result if
 * that is not 0.
 */
int cli_stream(struct cli *cli, enum method method, const char *path, const json_t *body,
               client_sync_body_fn *on_body, void *data, struct aq_error *err);

/* The same with the events of the answer given to 'on_event', of 64 KiB at the most each. */
int cli_stream_events(struct cli *cli, enum method method, const char *path, const json_t *body,
                      sse_event_fn *on_event, void *data, struct aq_error *err);

/* GET 'path' and copy what comes to standard output, as it comes. */
int cli_copy(struct cli *cli, const char *path, struct aq_error *err);

/* The same request for code that drives the loop itself: the URL, of "http" or "ws", and the
 * headers of a signed request without body, kept in the two buffers.
 */
int cli_request_prepare(struct cli *cli, const char *path, bool is_websocket,
                        struct client_request *request, struct strbuf *url, struct strbuf *headers,
                        struct aq_error *err);

/* The same as websocket_connect(), client_send() and client_fetch() by the client that
 * cli_client_open() gives: 'request' has neither URL nor headers, which come of 'path'.
 */
int cli_begin_websocket(struct cli *cli, const char *path, const struct websocket_options *options,
                        const struct websocket_ops *ops, void *data, struct websocket **ret,
                        struct aq_error *err);
int cli_begin_send(struct cli *cli, const char *path, struct client_request request,
                   const struct exchange_ops *ops, void *data, struct exchange **ret,
                   struct aq_error *err);
int cli_begin_fetch(struct cli *cli, const char *path, struct client_request request,
                    client_done_fn *on_done, void *data, struct exchange **ret,
                    struct aq_error *err);

/* The loop and its client ('ret_client' may be NULL); makes them. */
int cli_client_open(struct cli *cli, uv_loop_t **ret_loop, struct client **ret_client,
                    struct aq_error *err);

/* The endpoint in use. */
const char *cli_client_endpoint(const struct cli *cli);

/* Fill 'err' from an answer that is no success; returns -err->code. Members of the request that
 * it names are called as the options of the command that they came from.
 */
int cli_fail_status(const struct cli *cli, int status, const char *body, size_t len,
                    struct aq_error *err) AQ_UNTRUSTED;

/* Say of whom 'err', which came from a connection, is: CLI_KIND_UNREACHABLE if there was none. */
int cli_fail_connection(struct cli *cli, struct aq_error *err);

/* For commands that ask again and again: whether to wait for a manager that does not answer, as one
 * that restarts. True for five minutes from its last answer on; never for one that has not answered
 * yet, or that refuses. A note says that it is waited for. *lost_usec is when it was lost; 0 = it
 * answered last time, which the caller sets.
 */
bool cli_awaits_manager(struct cli *cli, const struct aq_error *err, bool has_answered,
                        int64_t *lost_usec);

/* Append "&name=value" or "?name=value", escaped; nothing for a NULL value. */
void cli_path_query(struct strbuf *path, const char *name, const char *value);

#endif
