/* SPDX-License-Identifier: Apache-2.0 */
/* Backend.AI request signatures, both directions. */
#include "http/sign.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <nettle/hmac.h>
#include <nettle/memops.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/uuid.h"

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* ---- derived keys ---- */

struct derived_key {
    char *from;                 /* "<day><secret>\n<host>"; NULL = empty */
    struct hmac_sha256_ctx ctx; /* with the key, which a digest leaves in it */
};

struct sign_cache {
    struct derived_key keys[SIGN_CACHE_SIZE]; /* by hash of 'from' */
};

static void sign_derived_key_done(struct derived_key *key)
{
    if (key->from)
        explicit_bzero(key->from, strlen(key->from));
    free(key->from);
    explicit_bzero(key, sizeof(*key));
}

static void sign_hmac(struct hmac_sha256_ctx *ctx, const char *text, size_t len, uint8_t ret[32])
{
    hmac_sha256_update(ctx, len, (const uint8_t *)text);
    hmac_sha256_digest(ctx, 32, ret);
}

static void sign_derive_key(const struct sign_input *in, const char *secret_key, const char *day,
                            struct hmac_sha256_ctx *ret)
{
    uint8_t key[32];

    hmac_sha256_set_key(ret, strlen(secret_key), (const uint8_t *)secret_key);
    sign_hmac(ret, day, 8, key);
    hmac_sha256_set_key(ret, sizeof(key), key);
    sign_hmac(ret, in->host, strlen(in->host), key);
    hmac_sha256_set_key(ret, sizeof(key), key);
    explicit_bzero(key, sizeof(key));
}

struct sign_cache *sign_cache_new(void)
{
    return aq_alloc(sizeof(struct sign_cache));
}

void sign_cache_free(struct sign_cache *cache)
{
    for (size_t i = 0; cache && i < SIGN_CACHE_SIZE; i++)
        sign_derived_key_done(&cache->keys[i]);
    free(cache);
}

/* The cache's key, derived if need be. */
static struct derived_key *sign_cached_key(struct sign_cache *cache, const struct sign_input *in,
                                           const char *secret_key, const char *day)
{
    char *from = aq_format("%s%s\n%s", day, secret_key, in->host);
    struct derived_key *key;

    key = &cache->keys[aq_hash(from, strlen(from)) % SIGN_CACHE_SIZE];
    if (key->from && strcmp(key->from, from) == 0) {
        explicit_bzero(from, strlen(from));
        free(from);
        return key;
    }
    sign_derived_key_done(key);
    key->from = from;
    sign_derive_key(in, secret_key, day, &key->ctx);
    return key;
}

static void sign_text(struct sign_cache *cache, const struct sign_input *in, const char *secret_key,
                      const char *day, const struct strbuf *text, uint8_t ret[32])
{
    struct derived_key own = { 0 };
    struct derived_key *key = &own;

    if (cache)
        key = sign_cached_key(cache, in, secret_key, day);
    else
        sign_derive_key(in, secret_key, day, &own.ctx);
    sign_hmac(&key->ctx, text->data, text->len, ret);
    sign_derived_key_done(&own);
}

/* ---- the text ---- */

/* YYYYMMDD of the date in its own time zone. */
static int sign_format_day(const char *date, char ret[9], struct aq_error *err)
{
    int64_t usec;
    struct tm tm;
    time_t sec;

    if (clock_parse_date(date, &usec) < 0)
        return aq_fail_kind(err, EINVAL, "invalid-auth-params", "Date/time sync error");
    if (isdigit((unsigned char)date[0]) && strlen(date) >= 10 && date[4] == '-') {
        (void)snprintf(ret, 9, "%.4s%.2s%.2s", date, date + 5, date + 8);
        return 0;
    }
    /* RFC 1123, which is always in UTC */
    sec = (time_t)(usec / USEC_PER_SEC);
    if (!gmtime_r(&sec, &tm) || strftime(ret, 9, "%Y%m%d", &tm) != 8)
        return aq_fail_kind(err, EINVAL, "invalid-auth-params", "Date/time sync error");
    return 0;
}

/* "application/JSON; charset=x" -> "application/json" */
static void sign_add_media_type(struct strbuf *out, const char *content_type)
{
    size_t len;

    if (!content_type)
        content_type = "application/octet-stream";
    len = strcspn(content_type, ";");
    while (len && content_type[len - 1] == ' ')
        len--;
    for (size_t i = 0; i < len; i++)
        strbuf_addc(out, (char)tolower((unsigned char)content_type[i]));
}

static void sign_add_line(struct strbuf *out, const char *line)
{
    strbuf_adds(out, line);
    strbuf_addc(out, '\n');
}

static int sign_compute_hex(struct sign_cache *cache, const struct sign_input *in,
                            const char *secret_key, uint8_t ret[32], struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char day[9];
    int r;

    r = sign_format_day(in->date, day, err);
    if (r < 0)
        return r;
    (void)strbuf_reserve(&text, 512);
    sign_add_line(&text, in->method);
    sign_add_line(&text, in->target);
    sign_add_line(&text, in->date);
    strbuf_adds(&text, "host:");
    sign_add_line(&text, in->host);
    strbuf_adds(&text, "content-type:");
    sign_add_media_type(&text, in->content_type);
    strbuf_adds(&text, in->is_sorna ? "\nx-sorna-version:" : "\nx-backendai-version:");
    sign_add_line(&text, in->version);
    strbuf_adds(&text, EMPTY_SHA256);
    sign_text(cache, in, secret_key, day, &text, ret);
    return 0;
}

int sign_compute(const struct sign_input *input, const char *secret_key, char ret[SIGN_HEX_MAX],
                 struct aq_error *err)
{
    uint8_t signature[32];
    int r = sign_compute_hex(NULL, input, secret_key, signature, err);

    for (size_t i = 0; i < 32 && r == 0; i++) {
        ret[2 * i] = "0123456789abcdef"[signature[i] >> 4];
        ret[2 * i + 1] = "0123456789abcdef"[signature[i] & 15];
    }
    if (r == 0)
        ret[64] = '\0';
    return r;
}

static int sign_fail_auth(struct aq_error *err, const char *msg)
{
    return aq_fail_kind(err, EINVAL, "invalid-auth-params", "%s", msg);
}

/* 64 hex digits, the whole text of 'len'. */
static bool sign_read_signature(const char *hex, size_t len, uint8_t ret[32])
{
    if (len != 64)
        return false;
    for (size_t i = 0; i < 64; i++) {
        int c = tolower((unsigned char)hex[i]);
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (digit < 0)
            return false;
        ret[i / 2] = (uint8_t)(i % 2 ? ret[i / 2] | digit : digit << 4);
    }
    return true;
}

/* "<access key>:<hex>" */
static bool sign_read_credential(const char *text, size_t len, struct sign_claim *ret)
{
    const char *colon = memchr(text, ':', len);
    size_t key_len = colon ? (size_t)(colon - text) : 0;

    if (!colon || key_len > SIGN_KEY_MAX)
        return false;
    for (size_t i = 0; i < key_len; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-_", text[i]))
            return false;
    memcpy(ret->access_key, text, key_len);
    ret->access_key[key_len] = '\0';
    return sign_read_signature(colon + 1, len - key_len - 1, ret->signature);
}

static size_t sign_skip_blanks(const char *text)
{
    return strspn(text, " \t");
}

int sign_parse_authorization(const char *header, struct sign_claim *ret, struct aq_error *err)
{
    size_t scheme = strcspn(header, " \t");
    const char *p = header + scheme + sign_skip_blanks(header + scheme);
    bool has_method = false, has_credential = false;

    if (!*p)
        return sign_fail_auth(err, "Malformed authorization header");
    if (!((scheme == 9 && !strncmp(header, "BackendAI", 9))
          || (scheme == 5 && !strncmp(header, "Sorna", 5))))
        return sign_fail_auth(err, "Invalid authorization type name");
    while (*p) {
        size_t len = strcspn(p, ","), end = len;
        const char *value = memchr(p, '=', len);

        while (end && (p[end - 1] == ' ' || p[end - 1] == '\t'))
            end--;
        if (!value)
            return sign_fail_auth(err, "Missing or malformed authorization parameters");
        value++;
        if (!strncmp(p, "signMethod=", 11) && !has_method) {
            has_method = true;
            if (end != 22 || strncasecmp(value, "HMAC-SHA256", 11))
                return sign_fail_auth(err, "Unsupported signing method: use HMAC-SHA256");
        } else if (!strncmp(p, "credential=", 11) && !has_credential) {
            has_credential = true;
            if (!sign_read_credential(value, end - 11, ret))
                return sign_fail_auth(err, "Missing or malformed authorization parameters");
        } else
            return sign_fail_auth(err, "Missing or malformed authorization parameters");
        p += len;
        if (*p == ',') {
            p++;
            p += sign_skip_blanks(p);
        }
    }
    if (!has_method || !has_credential)
        return sign_fail_auth(err, "Missing or malformed authorization parameters");
    return 0;
}

/* The first of these headers that is there, or NULL. */
static const char *sign_first_header(const struct request *req, const char *a, const char *b,
                                     const char *c)
{
    const char *value = request_get_header(req, a);

    if (!value)
        value = request_get_header(req, b);
    return value || !c ? value : request_get_header(req, c);
}

static int sign_read_date(const struct request *req, int64_t now_usec, struct sign_claim *claim,
                          struct aq_error *err)
{
    claim->input.date = sign_first_header(req, "Date", "X-BackendAI-Date", "X-Sorna-Date");
    if (!claim->input.date || clock_parse_date(claim->input.date, &claim->date_usec) < 0
        || claim->date_usec <= now_usec - SIGN_WINDOW_USEC
        || claim->date_usec >= now_usec + SIGN_WINDOW_USEC)
        return sign_fail_auth(err, "Date/time sync error");
    return 0;
}

int sign_claim_from_request(const struct request *req, int64_t now_usec, struct sign_claim *ret,
                            struct aq_error *err)
{
    const char *authorization = request_get_header(req, "Authorization");
    struct sign_claim claim = { .date_usec = 0 };
    struct sign_input *in = &claim.input;
    int r;

    r = sign_read_date(req, now_usec, &claim, err);
    if (r < 0)
        return r;
    if (!authorization)
        return aq_fail_kind(err, EACCES, "auth-failed", "Unauthorized access");
    r = sign_parse_authorization(authorization, &claim, err);
    if (r < 0)
        return r;
    in->version = request_get_header(req, "X-BackendAI-Version");
    if (!in->version) {
        in->version = request_get_header(req, "X-Sorna-Version");
        in->is_sorna = true;
    }
    if (!in->version)
        return sign_fail_auth(err, "API version missing in request headers");
    in->method = method_name(request_get_method(req));
    in->target = request_get_target(req);
    in->host = request_get_header(req, "Host");
    in->content_type = request_get_header(req, "Content-Type");
    if (!in->host)
        return sign_fail_auth(err, "Host missing in request headers");
    *ret = claim;
    return 0;
}

int sign_verify(struct sign_cache *cache, const struct sign_claim *claim, const char *secret_key,
                struct aq_error *err)
{
    uint8_t signature[32];
    int r = sign_compute_hex(cache, &claim->input, secret_key, signature, err);

    if (r < 0)
        return r;
    if (!memeql_sec(signature, claim->signature, sizeof(signature)))
        return aq_fail_kind(err, EACCES, "auth-failed", "Signature mismatch");
    return 0;
}

int sign_fail_unknown_key(struct aq_error *err)
{
    return aq_fail_kind(err, EACCES, "auth-failed", "Access key not found");
}

unsigned sign_tag(void)
{
    const struct uuid chance = uuid_random();

    return (unsigned)(chance.bytes[0] << 8 | chance.bytes[1]) % 1000;
}

/* "2026-11-21T01:02:03.456789012+00:00" */
static void sign_format_date(int64_t usec, unsigned tag, char ret[CLOCK_ISO_MAX])
{
    char iso[CLOCK_ISO_MAX];

    (void)snprintf(ret, CLOCK_ISO_MAX, "%.19s.%06d%03u+00:00", clock_format_iso(usec, iso),
                   (int)(usec % USEC_PER_SEC), tag % 1000);
}

int sign_write_headers(const struct sign_input *input, const char *access_key,
                       const char *secret_key, int64_t now_usec, unsigned tag, struct strbuf *out,
                       struct aq_error *err)
{
    struct sign_input in = *input;
    char date[CLOCK_ISO_MAX], hex[SIGN_HEX_MAX];
    int r;

    sign_format_date(now_usec, tag, date);
    in.date = date;
    r = sign_compute(&in, secret_key, hex, err);
    if (r < 0)
        return r;
    strbuf_addf(out,
                "Date: %s\r\n"
                "Authorization: BackendAI signMethod=HMAC-SHA256, credential=%s:%s\r\n"
                "X-BackendAI-Version: %s\r\n",
                in.date, access_key, hex, in.version);
    return 0;
}
