/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c - who may ask a service: tokens, their paths, rates and budgets
 *
 * Tokens are looked up by their SHA-256 in a table with a keyed hash: the time that takes says nothing
 * about tokens that are good.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "proxy/serving/service.h"
#include "serving/path_rule.h"

#define BUCKET_SEC 10
#define ONE_REQUEST INT64_C(1000000) /* of a bucket's level */
#define RATE_MAX INT64_C(1000000000) /* thousandths: the arithmetic stays within 63 bits */
#define TOKEN_TEXT_MAX 1024

struct token *token_new(const struct uuid *id)
{
    struct token *token = aq_alloc(sizeof(*token));

    token->id = *id;
    list_init(&token->link);
    list_init(&token->waiting);
    list_init(&token->turn_link);
    return token;
}

void token_free(struct token *token)
{
    list_remove(&token->link);
    free(token);
}

/* What follows "Bearer" or "BackendAI"; NULL = it is another kind of authorization. */
static const char *token_find_text(const struct message_head *head)
{
    static const char *const schemes[] = { "Bearer", "BackendAI" };
    const char *value = message_get_header(head, "Authorization");

    for (size_t i = 0; value && i < AQ_COUNT(schemes); i++) {
        size_t len = strlen(schemes[i]);

        if (strncasecmp(value, schemes[i], len) == 0 && value[len] == ' ')
            return value + len + strspn(value + len, " ");
    }
    return NULL;
}

static struct token *token_find(const struct served *service, const char *text)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char hex[2 * sizeof(hash) + 1];

    if (strlen(text) > TOKEN_TEXT_MAX)
        return NULL;
    (void)crypto_hash_sha256(hash, (const unsigned char *)text, strlen(text));
    return map_gets(&service->hashes, sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash)));
}

/* 0: one request is taken from the bucket; else the seconds until there is one. */
static unsigned token_take_request(struct token *token, int64_t now)
{
    int64_t rate = AQ_MIN(token->said->rate_milli, RATE_MAX);
    int64_t full = AQ_MAX(rate * 1000 * BUCKET_SEC, ONE_REQUEST);
    int64_t usec = AQ_MIN(now - token->filled_usec, BUCKET_SEC * USEC_PER_SEC);

    if (rate <= 0)
        return 0;
    /* the first request, or a slow rate whose bucket takes longer to fill, finds it full */
    token->level = token->filled_usec ? AQ_MIN(token->level + rate * usec / 1000, full) : full;
    token->filled_usec = now;
    if (token->level >= ONE_REQUEST) {
        token->level -= ONE_REQUEST;
        return 0;
    }
    return (unsigned)((ONE_REQUEST - token->level) / (rate * 1000)) + 1;
}

static bool token_is_spent(const struct token *token)
{
    return token->said->is_spent || (token->budget && token->spent >= token->budget);
}

static struct token *token_refuse(struct browser *b, int status, const char *code,
                                  unsigned retry_sec, const char *text)
{
    serving_refuse(b, status, code, retry_sec, text);
    return NULL;
}

struct token *token_admit(struct browser *b, struct served *service,
                          const struct message_head *head)
{
    const char *text = token_find_text(head);
    struct token *token = text ? token_find(service, text) : NULL;
    unsigned wait;

    if (!token && service->msg->is_public)
        return &service->anyone;
    if (!text)
        return token_refuse(b, 401, "missing_api_key", 0,
                            "This model service requires a token: send it as 'Authorization: "
                            "Bearer TOKEN'.");
    b->turn.is_shared = token && message_get_header(head, "Origin");
    if (!token || (token->said->expires_usec && token->said->expires_usec <= clock_realtime_usec()))
        return token_refuse(b, 401, "invalid_api_key", 0,
                            "The token is not one of this model service, was revoked, or has "
                            "expired.");
    if (token->said->paths.count && !path_rule_allows(&token->said->paths, b->place.rest))
        return token_refuse(b, 403, "path_not_allowed", 0,
                            "The token does not allow requests to this path.");
    if (token_is_spent(token)) {
        served_count_refused(service, token);
        return token_refuse(b, 429, "insufficient_quota", 0,
                            "The token has used up its budget of model tokens.");
    }
    if ((wait = token_take_request(token, clock_monotonic_usec()))) {
        served_count_refused(service, token);
        return token_refuse(b, 429, "rate_limit_exceeded", wait,
                            "The token's limit of requests per second is exceeded.");
    }
    return token;
}
