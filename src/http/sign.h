/* SPDX-License-Identifier: Apache-2.0 */
/* sign.h - Backend.AI request signatures, both directions
 *
 *     Authorization: BackendAI signMethod=HMAC-SHA256, credential=<key>:<hex>
 *
 * The signature is over seven lines: method, raw path and query, the Date
 * header verbatim, "host:" and the Host header, "content-type:" and the bare
 * lower-case media type, "x-backendai-version:" and the version header, and
 * the SHA-256 of nothing. Key: HMAC(HMAC(secret, YYYYMMDD of the date), host).
 * The body is not signed.
 */
#ifndef AQ_HTTP_SIGN_H
#define AQ_HTTP_SIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "http/server.h"

#define SIGN_KEY_MAX 64
#define SIGN_HEX_MAX 65
#define SIGN_WINDOW_USEC INT64_C(900000000) /* 15 minutes either way */

struct sign_input {
    const char *method;       /* upper case */
    const char *target;       /* raw path and query */
    const char *date;         /* header text, verbatim */
    const char *host;         /* header text, verbatim */
    const char *content_type; /* header text or NULL (= application/octet-stream) */
    const char *version;      /* header text */
    bool is_sorna;            /* the version came as X-Sorna-Version */
};

/* The signature in lower-case hex. -EINVAL for an unreadable date. */
int sign_compute(const struct sign_input *input, const char *secret_key, char ret[SIGN_HEX_MAX],
                 struct aq_error *err);

/* What an Authorization header claims. */
struct sign_claim {
    struct sign_input input;
    int64_t date_usec;
    char access_key[SIGN_KEY_MAX + 1]; /* "" = anonymous */
    uint8_t signature[32];
};

/* Read an Authorization header. Errors as sign_claim_from_request(). */
int sign_parse_authorization(const char *header, struct sign_claim *ret,
                             struct aq_error *err) AQ_UNTRUSTED;

/* Everything that can be checked without the secret. The claim borrows the
 * request's texts. Errors carry the kinds and texts of Backend.AI's manager:
 * date missing, unreadable or 15 minutes off: invalid-auth-params "Date/time
 * sync error"; no Authorization: auth-failed "Unauthorized access"; other
 * scheme, malformed, no version header: invalid-auth-params.
 */
int sign_claim_from_request(const struct request *req, int64_t now_usec, struct sign_claim *ret,
                            struct aq_error *err) AQ_UNTRUSTED;

/* Keys of signatures that were derived before: two of the three HMACs of a
 * signature depend on secret, day and host alone. Holds secrets; a few hundred
 * bytes for each of the last SIGN_CACHE_SIZE (roughly) of them. One thread.
 */
#define SIGN_CACHE_SIZE 64
struct sign_cache;

struct sign_cache *sign_cache_new(void);
void sign_cache_free(struct sign_cache *cache);

/* Compare in constant time: 0 or auth-failed "Signature mismatch". The cache
 * may be NULL.
 */
int sign_verify(struct sign_cache *cache, const struct sign_claim *claim, const char *secret_key,
                struct aq_error *err);

/* auth-failed "Access key not found", for a key that is unknown or inactive. */
int sign_fail_unknown_key(struct aq_error *err);

/* Client: append "Name: value\r\n" lines for Date, Authorization and
 * X-BackendAI-Version. input->date is ignored; the time is 'now_usec'. Equal
 * requests of one time have one signature, which counts once: 'tag', 0 to 999,
 * stands behind the microseconds and tells them apart.
 */
int sign_write_headers(const struct sign_input *input, const char *access_key,
                       const char *secret_key, int64_t now_usec, unsigned tag, struct strbuf *out,
                       struct aq_error *err);

/* A tag by chance. */
unsigned sign_tag(void);

#endif
