/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - what guards browsers: which pages may ask, and what a page of ours may do */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/problem.h"
#include "web/web.h"

bool page_is_https(const struct web *web)
{
    return front_settings_is_https(&web->settings->common);
}

void page_write_endpoint(const struct web *web, const struct request *req, char ret[WEB_URL_MAX])
{
    const struct front_settings *s = &web->settings->common;
    const char *host = request_get_header(req, "Host");

    if (s->has_public_url || !host || !*host || strpbrk(host, "\"\\<>'`&"))
        (void)snprintf(ret, WEB_URL_MAX, "%s", s->public_url);
    else
        (void)snprintf(ret, WEB_URL_MAX, "%s://%.255s", web->front->tls ? "https" : "http", host);
}

/* ---- who may ask ---- */

static bool page_is_allowed(const struct web *web, const char *origin)
{
    const struct conf_list *allowed = &web->settings->allowed_origins;

    for (size_t i = 0; i < allowed->count; i++)
        if (strcasecmp(allowed->items[i], origin) == 0)
            return true;
    return false;
}

static bool page_is_own(const struct web *web, const struct request *req, const char *origin)
{
    char endpoint[WEB_URL_MAX];

    page_write_endpoint(web, req, endpoint);
    return strcasecmp(origin, endpoint) == 0
           || strcasecmp(origin, web->settings->common.public_url) == 0;
}

/* Does another page ask? Programs say neither header; a browser says the second with every
 * request, and the first with every change.
 */
static bool page_is_foreign(const struct web *web, const struct request *req)
{
    const char *origin = request_get_header(req, "Origin");
    const char *site = request_get_header(req, "Sec-Fetch-Site");

    if (origin && page_is_allowed(web, origin))
        return false;
    if (origin && !page_is_own(web, req, origin))
        return true;
    return site && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0;
}

/* Answered to a browser that asks before it sends, for a page that may. */
static void page_add_allowed(struct request *req, const char *origin)
{
    const char *wanted = request_get_header(req, "Access-Control-Request-Headers");

    request_add_header(req, "Access-Control-Allow-Origin", origin);
    request_add_header(req, "Access-Control-Allow-Credentials", "true");
    request_add_header(req, "Vary", "Origin");
    if (request_get_header(req, "Access-Control-Request-Method")) {
        request_add_header(req, "Access-Control-Allow-Methods",
                           "GET, HEAD, POST, PUT, PATCH, DELETE");
        request_add_header(req, "Access-Control-Allow-Headers", wanted ? wanted : "Content-Type");
        request_add_header(req, "Access-Control-Max-Age", "600");
    }
}

/* By another name a page from elsewhere could reach a server that is for its own machine alone:
 * names lead where their owner says.
 */
static bool page_is_misled(const struct web *web, const struct request *req)
{
    const struct front_settings *s = &web->settings->common;
    const char *host = request_get_header(req, "Host");
    struct address own = { .is_unix = false }, named;

    (void)snprintf(own.host, sizeof(own.host), "%s", s->listen.host);
    return !s->has_public_url && host && address_is_local(&own)
           && (address_parse(host, 80, &named, NULL) < 0 || !address_is_local(&named));
}

int page_guard(struct request *req, const struct route *route, void *data, struct aq_error *err)
{
    struct web *web = data;
    const struct message_head *head = request_get_head(req);
    const char *origin = request_get_header(req, "Origin");
    bool is_for_all = !head->is_upgrade && !relay_is_asked(req)
                      && (head->method == METHOD_GET || head->method == METHOD_HEAD
                          || head->method == METHOD_OPTIONS);

    (void)route;
    request_add_header(req, "X-Content-Type-Options", "nosniff");
    request_add_header(req, "Referrer-Policy", "same-origin");
    request_add_header(req, "Cross-Origin-Resource-Policy", "same-origin");
    if (page_is_https(web))
        request_add_header(req, "Strict-Transport-Security", "max-age=31536000");
    if (origin && page_is_allowed(web, origin))
        page_add_allowed(req, origin);
    if (page_is_misled(web, req))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "this server is for its own machine; the setting public-url gives it "
                            "another name");
    if (is_for_all || !page_is_foreign(web, req))
        return 0;
    web->counts.refused++;
    return aq_fail_kind(err, EPERM, "generic-forbidden",
                        "a page of another origin may not do this; the setting allowed-origins "
                        "names those that may");
}

/* ---- what a page may do ---- */

void page_make_nonce(char ret[PAGE_NONCE_MAX])
{
    unsigned char bytes[18];

    randombytes_buf(bytes, sizeof(bytes));
    (void)sodium_bin2base64(ret, PAGE_NONCE_MAX, bytes, sizeof(bytes),
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

void page_add_policy(const struct web *web, struct request *req, const char *nonce,
                     const char *hashes)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (!hashes)
        strbuf_addf(&out,
                    "default-src 'none'; script-src 'self' 'nonce-%s'; style-src 'self' "
                    "'nonce-%s'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; "
                    "connect-src 'self'%s; require-trusted-types-for 'script'",
                    nonce, nonce, web->origins.data);
    else
        strbuf_addf(
            &out,
            "default-src 'self'; script-src 'self' 'nonce-%s'%s 'wasm-unsafe-eval'; "
            "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src "
            "'self' data:; connect-src 'self'%s; worker-src 'self' blob:; object-src 'none'",
            nonce, hashes, web->origins.data);
    strbuf_adds(&out, "; base-uri 'self'; form-action 'self'; frame-ancestors 'none'");
    request_add_header(req, "Content-Security-Policy", out.data);
    request_add_header(req, "Cross-Origin-Opener-Policy", "same-origin-allow-popups");
    request_add_header(req, "Cache-Control", "no-store");
}
