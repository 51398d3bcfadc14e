/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - what clients of a storage host have in common: tokens, places, refusals */
#include <errno.h>
#include <string.h>

#include "base/jsonw.h"
#include "storage/storage.h"

#define RETRY_SEC 1
#define UPLOAD_MOST_USEC (INT64_C(7) * 86400 * USEC_PER_SEC) /* that was begun in time */

int storage_read_token(struct storage *storage, struct request *req, bool is_upload,
                       struct token *ret, struct volume **ret_volume, bool *ret_is_expired,
                       struct aq_error *err)
{
    const char *text = request_get_query(req, "token");
    int64_t now_usec;
    int r;

    if (!text)
        return aq_fail(err, EINVAL, "token: missing");
    r = token_read(storage->key, text, is_upload, ret, err);
    if (r < 0)
        return r;
    now_usec = clock_realtime_usec();
    *ret_is_expired = now_usec >= ret->expires_usec;
    if (now_usec >= ret->expires_usec + (is_upload ? UPLOAD_MOST_USEC : 0))
        return aq_fail(err, EACCES, "the token has expired");
    *ret_volume = storage_find_volume(storage, ret->volume);
    return *ret_volume ? 0
                       : aq_fail(err, ENOENT, "this storage host has no volume '%s'", ret->volume);
}

bool storage_enter(struct storage *storage, struct request *req)
{
    if (storage->transfer_count >= (size_t)storage->settings->transfers_max) {
        request_add_header_int(req, "Retry-After", RETRY_SEC);
        storage_refuse(storage, req, 503, "too many transfers are under way; try again");
        return false;
    }
    storage->transfer_count++;
    return true;
}

static int storage_count_for(struct quota *quota, const struct uuid *id, const char *whose,
                             struct quota_client **ret, struct aq_error *err)
{
    char name[UUID_TEXT_MAX];
    struct aq_error why = { 0 };

    if (quota_enter(quota, uuid_format(id, name), ret, &why) == 0)
        return 0;
    return aq_fail(err, EAGAIN,
                   "this %s has its share of the transfers; end some of them, or try again", whose);
}

int storage_take_share(struct storage *storage, const struct token *token,
                       struct storage_share *ret, struct aq_error *err)
{
    int r = storage_count_for(&storage->users, token_user(token), "user", &ret->user, err);

    return r < 0 ? r
                 : storage_count_for(&storage->folders, &token->folder_id, "folder", &ret->folder,
                                     err);
}

int storage_hold_usage(struct volume *volume, const struct token *token, struct usage_hold *hold,
                       void (*ready)(struct usage_hold *hold, const struct aq_error *err),
                       struct aq_error *err)
{
    return token->quota_bytes ? usage_hold(volume->storage->usage, volume, &token->folder_id,
                                           token_user(token), USAGE_ANY, hold, ready, err)
                              : 1;
}

void storage_leave(struct storage_transfer *transfer)
{
    struct storage *storage = transfer->storage;

    if (transfer->share.user)
        quota_leave(&storage->users, transfer->share.user, 0);
    if (transfer->share.folder)
        quota_leave(&storage->folders, transfer->share.folder, 0);
    storage->transfer_count--;
    storage_settle(storage);
}

void storage_refuse(struct storage *storage, struct request *req, int status, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    storage->counts.refused++;
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "title", text);
    jsonw_member_int(&w, "status", status);
    jsonw_object_end(&w);
    request_reply(req, status, "application/problem+json", out.data, out.len);
}

void storage_fail(struct storage *storage, struct request *req, const struct aq_error *err)
{
    static const struct {
        int code, status;
    } known[] = {
        { EACCES, 403 }, { EINVAL, 400 }, { ENAMETOOLONG, 400 }, { ENOTDIR, 400 }, { EISDIR, 400 },
        { EEXIST, 409 }, { ENOENT, 404 }, { EDQUOT, 413 },       { EFBIG, 413 },   { ENOSPC, 507 },
        { EROFS, 507 },  { EPERM, 403 },  { EAGAIN, 503 },       { ENOMEM, 503 },  { EBUSY, 409 },
        { ELOOP, 400 },  { ENODEV, 503 }, { ECONNRESET, 400 },
    };
    size_t i = 0;

    while (i < AQ_COUNT(known) && known[i].code != err->code)
        i++;
    if (err->code == EAGAIN)
        request_add_header_int(req, "Retry-After", RETRY_SEC);
    storage_refuse(storage, req, i < AQ_COUNT(known) ? known[i].status : 500, err->text);
}
