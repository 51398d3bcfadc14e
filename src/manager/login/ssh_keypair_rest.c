/* SPDX-License-Identifier: Apache-2.0 */
/* /auth/ssh-keypair: the caller's own key for the SSH servers of sessions. The public half is
 * kept with the keypair that signs; the private one is shown once, and kept nowhere.
 */
#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "manager/account/account.h"
#include "manager/login/login_feature.h"
#include "model/ssh_key.h"

#define PUBLIC_TEXT_MAX 8192 /* with a comment */

/* In the request's arena. */
struct ssh_keypair {
    struct api *api;
    struct request *req;
    const char *given, *given_private;
    char public_key[SSH_PUBLIC_KEY_MAX];
    struct strbuf private_key;
};

static void ssh_keypair_reply(struct request *req, const char *public_key, const char *private_key)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "ssh_public_key", public_key ? public_key : "");
    if (private_key)
        jsonw_member_str(&w, "ssh_private_key", private_key);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void ssh_keypair_on_get(struct request *req, void *data)
{
    const struct api *api = data;
    const struct keypair *key = core_find_keypair(api->core, api_principal(req)->access_key);

    if (api_has_no_params(req))
        ssh_keypair_reply(req, key ? key->ssh_public_key : NULL, NULL);
}

/* ---- changing ---- */

static void ssh_keypair_on_saved(void *data, int r, const struct aq_error *err)
{
    struct ssh_keypair *pair = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf secret =
        pair->private_key; /* 'pair' goes by the reply */

    if (r < 0)
        request_fail(pair->req, err);
    else
        ssh_keypair_reply(pair->req, pair->public_key,
                          secret.len ? secret.data : pair->given_private);
    if (secret.len)
        explicit_bzero(secret.data, secret.len);
}

/* 'public_key' NULL: none from now on. What fails is answered. */
static void ssh_keypair_save(struct ssh_keypair *pair, const char *public_key)
{
    struct account_change *change = account_begin(pair->api, pair->req, &account_keypair);
    struct audit_who by = *api_who(pair->api, pair->req);
    struct aq_error err = { 0 };

    if (account_change_ssh_key(change, api_principal(pair->req)->access_key, public_key, &err)
        < 0) {
        strbuf_done(&pair->private_key);
        account_end(change, pair->req, &err);
        return;
    }
    by.action = "update-ssh-key";
    if (account_change_save(change, &by, ssh_keypair_on_saved, pair, &err) < 0)
        ssh_keypair_on_saved(pair, -err.code, &err);
}

static struct ssh_keypair *ssh_keypair_new(struct api *api, struct request *req)
{
    struct ssh_keypair *pair = arena_alloc(request_get_arena(req), sizeof(*pair));

    pair->api = api;
    pair->req = req;
    strbuf_init(&pair->private_key);
    return pair;
}

static void ssh_keypair_make(struct ssh_keypair *pair)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf open = STRBUF_INIT;
    unsigned char both[crypto_sign_SECRETKEYBYTES];
    struct ssh_key key;

    static_assert(crypto_sign_SEEDBYTES == SSH_KEY_SIZE
                      && crypto_sign_PUBLICKEYBYTES == SSH_KEY_SIZE,
                  "keys of Ed25519");
    randombytes_buf(key.secret, sizeof(key.secret));
    (void)crypto_sign_seed_keypair(key.open, both, key.secret);
    ssh_key_add_public(&key, &open);
    ssh_key_add_openssh(&key, api_principal(pair->req)->access_key, &pair->private_key);
    explicit_bzero(&key, sizeof(key));
    explicit_bzero(both, sizeof(both));
    (void)snprintf(pair->public_key, sizeof(pair->public_key), "%s", open.data);
}

static void ssh_keypair_on_make(struct request *req, void *data)
{
    struct ssh_keypair *pair;

    if (!api_has_no_params(req))
        return;
    pair = ssh_keypair_new(data, req);
    ssh_keypair_make(pair);
    ssh_keypair_save(pair, pair->public_key);
}

static const struct field ssh_keypair_fields[] = {
    { "pubkey", FIELD_STR, FIELD_REQUIRED, offsetof(struct ssh_keypair, given), 0, PUBLIC_TEXT_MAX,
      .doc = "a line such as \"ssh-ed25519 AAAA...\"" },
    { "privkey", FIELD_STR, FIELD_NULLABLE | FIELD_SECRET,
      offsetof(struct ssh_keypair, given_private), 0, 16384,
      .doc = "not needed and not kept; it is in the answer" },
    FIELD_END,
};

static void ssh_keypair_on_set(struct request *req, void *data)
{
    struct ssh_keypair *pair = ssh_keypair_new(data, req);
    struct aq_error err = { 0 };

    if (!pair)
        return;
    if (api_decode(req, pair, NULL, &err) < 0
        || ssh_public_key_parse(pair->given, pair->public_key, &err) < 0)
        request_fail(req, &err);
    else
        ssh_keypair_save(pair, pair->public_key);
}

static void ssh_keypair_on_remove(struct request *req, void *data)
{
    struct ssh_keypair *pair = api_has_no_params(req) ? ssh_keypair_new(data, req) : NULL;

    if (pair)
        ssh_keypair_save(pair, NULL);
}

static const struct route ssh_keypair_routes[] = {
    { METHOD_GET, "/auth/ssh-keypair", API_USER, ssh_keypair_on_get, NULL,
      "The public SSH key that the caller's sessions accept" },
    { METHOD_PATCH, "/auth/ssh-keypair", API_USER, ssh_keypair_on_make, NULL,
      "Make another SSH key for the caller's sessions; the answer has its private half, once" },
    { METHOD_POST, "/auth/ssh-keypair", API_USER, ssh_keypair_on_set, ssh_keypair_fields,
      "Have the caller's sessions accept this public SSH key" },
    { METHOD_DELETE, "/auth/ssh-keypair", API_USER, ssh_keypair_on_remove, NULL,
      "Remove the SSH key that the caller's sessions accept" },
};
API_ROUTES_END(ssh_keypair);
