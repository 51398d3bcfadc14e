/* SPDX-License-Identifier: Apache-2.0 */
/* registry_client.h - reading from one container registry
 *
 * Blocks, on a thread of its own; one request at a time. It logs in as the registry wants,
 * by Basic or by a token, and follows where blobs are. Addresses of the link, of clouds'
 * metadata services and, from elsewhere than the registry's own host, of more private networks
 * than the registry's own are not connected to.
 */
#ifndef AQ_REGISTRY_REGISTRY_CLIENT_H
#define AQ_REGISTRY_REGISTRY_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/strbuf.h"
#include "http/client.h"

struct registry_client;

struct registry_client_conf {
    const char *url;                 /* "https://HOST[:PORT]"; borrowed, as all of these */
    const char *username, *password; /* NULL = nobody */
    bool skip_verify;                /* of certificates */
    const atomic_bool *stop;         /* set by another thread: requests end with -ECANCELED */
};

int registry_client_new(const struct registry_client_conf *conf, struct registry_client **ret,
                        struct aq_error *err);
void registry_client_free(struct registry_client *rc);
AQ_DEFINE_CLEANUP(struct registry_client, registry_client_free)

struct registry_answer {
    int status;
    bool has_next; /* there is a Link header: another page follows */
    struct strbuf body;
};

void registry_answer_done(struct registry_answer *answer);

/* GET of a path at the registry, "/v2/...". 'accept' is a header's value, or NULL. 0 for the
 * statuses 200 and 404; else -errno with an error that says what it answered. -EACCES, -ECANCELED,
 * -EFBIG past 'body_max' bytes, ... An answer that is cut or late, and the statuses 408, 429 and
 * 5xx, are asked for again, up to four times in all, after pauses which Retry-After may prolong to
 * a minute.
 */
int registry_client_get(struct registry_client *rc, const char *path, const char *accept,
                        size_t body_max, struct registry_answer *ret, struct aq_error *err);

/* Gets an answer while it arrives. A negative result, with 'err' filled, ends the request with it.
 */
struct registry_reader {
    /* The head of the answer after logins and redirects, whatever its status. */
    int (*on_head)(void *data, const struct message_head *head, struct aq_error *err);
    int (*on_body)(void *data, const char *bytes, size_t len, struct aq_error *err);
    void *data;
};

/* GET of a path at the registry, with "Range: bytes=FROM-" unless 'from' is 0; repeated, after the
 * pause that the registry wants, only where it limits the rate of requests. 0 after the whole
 * answer; else the reader's -errno, -EACCES, -ECONNRESET for an answer that was cut, -ETIMEDOUT
 * after two minutes without a byte, and as registry_client_get().
 */
int registry_client_read(struct registry_client *rc, const char *path, uint64_t from,
                         const struct registry_reader *reader, struct aq_error *err);

/* Fill 'err' for the status of an answer: -EAGAIN (429), -EREMOTEIO, -EACCES, -EPROTO. 'who' is the
 * subject of the sentence.
 */
int registry_client_fail_status(const char *who, int status, struct aq_error *err);

#endif
