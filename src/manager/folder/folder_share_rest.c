/* SPDX-License-Identifier: Apache-2.0 */
/* /folders: whom folders are offered to and shared with. */
#include <errno.h>

#include "base/clock.h"
#include "manager/folder/folder_feature.h"
#include "manager/folder/folder_call.h"
#include "manager/rules/folder_find.h"

#define NAMED_MAX 100 /* users of one request */

struct folder_share_params {
    const char *permission;
    struct str_list emails;
    struct uuid *ids; /* of those that there are, with their e-mails in 'emails' */
    size_t count;
    const char *invitation, *user, *folder;
};

#define AT(member) offsetof(struct folder_share_params, member)

static struct folder_call *folder_share_new(struct api *api, struct request *req, enum folder_op op)
{
    static const struct folder_share_params defaults = { .permission = "rw" };

    return folder_call_new(api, req, op, sizeof(defaults), &defaults);
}

/* The active users among those that are named; their e-mails move up in the list. */
static int folder_find_users(struct folder_call *call, struct aq_error *err)
{
    struct folder_share_params *params = call->params;
    enum folder_permission ignored;

    params->ids = arena_array(request_get_arena(call->req), AQ_MAX(params->emails.count, 1),
                              sizeof(*params->ids));
    for (size_t i = 0; i < params->emails.count; i++) {
        const struct user *user = core_find_user_by_email(call->api->core, params->emails.items[i]);

        if (!user || user->status != USER_ACTIVE)
            continue;
        params->emails.items[params->count] = params->emails.items[i];
        params->ids[params->count++] = user->id;
    }
    return folder_read_permission("permission", params->permission, &ignored, err);
}

/* Run it for the users that are named, with the names of those that it changed as answer. */
static void folder_share_start(struct folder_call *call, folder_run_fn *run, folder_done_fn *done)
{
    struct aq_error err = { 0 };

    if (folder_find_users(call, &err) < 0) {
        folder_call_fail(call, &err);
        return;
    }
    call->run = run;
    call->done = done;
    folder_call_write(call);
}

static json_t *folder_show_emails(const struct str_list *emails, size_t count)
{
    json_t *all = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(all, json_string(emails->items[i]));
    return all;
}

static void folder_reply_emails(struct folder_call *call, const char *member)
{
    const struct folder_share_params *params = call->params;

    folder_reply_json(
        call, json_pack("{s:o}", member, folder_show_emails(&params->emails, params->count)));
}

/* What the users that were named have become, of whom 'count' are left. */
static int folder_audit_users(struct store_tx *tx, const struct folder_call *call,
                              const char *action, struct aq_error *err)
{
    const struct folder_share_params *params = call->params;
    json_t *emails = folder_show_emails(&params->emails, params->count);

    if (!params->count) {
        json_decref(emails);
        return 0;
    }
    return folder_audit(tx, call, action, NULL,
                        json_pack("{s:s, s:o}", "permission", params->permission, "users", emails),
                        err);
}

/* ---- a folder of a user: invitations ---- */

static const struct field folder_invite_fields[] = {
    { "perm|permission", FIELD_STR, 0, AT(permission), 1, 8, .doc = "ro, rw or wd" },
    { "user_ids|userIDs|emails", FIELD_STR_LIST, FIELD_REQUIRED, AT(emails), .max = NAMED_MAX,
      .doc = "e-mails" },
    FIELD_END,
};

static int folder_invite_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    struct folder_share_params *params = call->params;
    struct folder_invitation invitation = { .folder_id = call->folder.id,
                                            .inviter_id = call->who.user_id,
                                            .created_usec = clock_realtime_usec() };
    size_t count = params->count;

    (void)folder_permission_parse(params->permission, &invitation.permission);
    params->count = 0;
    for (size_t i = 0; i < count; i++) {
        int r = 0;

        invitation.id = uuid_random();
        invitation.user_id = params->ids[i];
        if (!uuid_equals(&params->ids[i], &call->folder.user_id)
            && (r = folder_invite(tx, &invitation, err)) < 0)
            return r;
        if (r > 0)
            params->emails.items[params->count++] = params->emails.items[i];
    }
    return folder_audit_users(tx, call, "invite-to-vfolder", err);
}

static void folder_invite_done(struct folder_call *call)
{
    folder_reply_emails(call, "invited_ids");
}

static void folder_on_invite(struct request *req, void *data)
{
    struct folder_call *call = folder_share_new(data, req, FOLDER_INVITE);

    if (!call)
        return;
    call->status = 201;
    folder_share_start(call, folder_invite_run, folder_invite_done);
}

static json_t *folder_show_invitation(const struct folder_invitation *i)
{
    char id[UUID_TEXT_MAX], folder[UUID_TEXT_MAX], iso[CLOCK_ISO_MAX];

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "id", uuid_format(&i->id, id),
                     "inviter", i->inviter, "invitee", i->invitee, "perm",
                     folder_permission_name(i->permission), "vfolder_id",
                     uuid_format(&i->folder_id, folder), "vfolder_name", i->folder_name, "state",
                     "pending", "created_at", clock_format_iso(i->created_usec, iso));
}

static void folder_invitations_done(struct folder_call *call)
{
    const struct folder_invitation *found = call->result;
    json_t *all = json_array();

    for (int i = 0; i < call->count; i++)
        (void)json_array_append_new(all, folder_show_invitation(&found[i]));
    folder_reply_json(call, json_pack("{s:o}", "invitations", all));
}

static int folder_list_received_run(struct store_tx *tx, struct folder_call *call,
                                    struct aq_error *err)
{
    call->count = folder_list_invitations(tx, &call->who.user_id, false,
                                          request_get_arena(call->req),
                                          (struct folder_invitation **)&call->result, err);
    return AQ_MIN(call->count, 0);
}

static int folder_list_sent_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    call->count = folder_list_invitations(tx, &call->who.user_id, true,
                                          request_get_arena(call->req),
                                          (struct folder_invitation **)&call->result, err);
    return AQ_MIN(call->count, 0);
}

static void folder_invitations_start(struct api *api, struct request *req, folder_run_fn *run)
{
    struct folder_call *call = folder_share_new(api, req, FOLDER_SEE);

    if (!call)
        return;
    call->run = run;
    call->done = folder_invitations_done;
    folder_call_read(call);
}

static void folder_on_invitations(struct request *req, void *data)
{
    folder_invitations_start(data, req, folder_list_received_run);
}

static void folder_on_invitations_sent(struct request *req, void *data)
{
    folder_invitations_start(data, req, folder_list_sent_run);
}

/* ---- an invitation ---- */

static const struct field folder_invitation_fields[] = {
    { "inv_id|invitation_id", FIELD_STR, FIELD_REQUIRED, AT(invitation), 1, 64 },
    FIELD_END,
};

static const struct field folder_invitation_update_fields[] = {
    { "perm|permission", FIELD_STR, FIELD_REQUIRED, AT(permission), 1, 8 },
    FIELD_END,
};

/* That of the parameters, of the caller: to whom it is, or also from whom. */
static int folder_find_own_invitation(struct store_tx *tx, struct folder_call *call,
                                      bool by_inviter, struct folder_invitation *ret,
                                      struct aq_error *err)
{
    const struct folder_share_params *params = call->params;
    struct uuid id;
    int r = uuid_parse(params->invitation, &id) == 0
                ? folder_find_invitation(tx, &id, request_get_arena(call->req), ret, err)
                : 0;

    if (r < 0)
        return r;
    if (r == 0
        || (!uuid_equals(&ret->user_id, &call->who.user_id)
            && !(by_inviter && uuid_equals(&ret->inviter_id, &call->who.user_id))))
        return problem_no_such(err, "vfolder invitation", "there is no such invitation");
    call->folder.id = ret->folder_id;
    call->folder.name = ret->folder_name;
    call->folder.domain = call->by->domain[0] ? call->by->domain : NULL;
    return 0;
}

static int folder_accept_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_owner me = { .user_id = call->who.user_id };
    struct folder_invitation invitation;
    int r = folder_find_own_invitation(tx, call, false, &invitation, err);

    if (r < 0
        || (r = folder_check_name(tx, &me, invitation.folder_name, &invitation.folder_id, err)) < 0
        || (r = folder_remove_invitation(tx, &invitation.id, err)) < 0
        || (r = folder_set_share(tx, &invitation.folder_id, &call->who.user_id,
                                 invitation.permission, err))
               < 0)
        return r;
    return folder_audit(tx, call, "accept-vfolder", NULL,
                        json_pack("{s:s, s:s}", "inviter", invitation.inviter, "permission",
                                  folder_permission_name(invitation.permission)),
                        err);
}

static int folder_reject_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    struct folder_invitation invitation;
    int r = folder_find_own_invitation(tx, call, true, &invitation, err);

    if (r < 0 || (r = folder_remove_invitation(tx, &invitation.id, err)) < 0)
        return r;
    return folder_audit(
        tx, call, "reject-vfolder",
        json_pack("{s:s, s:s}", "inviter", invitation.inviter, "invitee", invitation.invitee), NULL,
        err);
}

static int folder_invitation_update_run(struct store_tx *tx, struct folder_call *call,
                                        struct aq_error *err)
{
    const struct folder_share_params *params = call->params;
    struct folder_invitation invitation;
    enum folder_permission permission;
    int r = folder_read_permission("perm", params->permission, &permission, err);

    if (r < 0 || (r = folder_find_own_invitation(tx, call, true, &invitation, err)) < 0)
        return r;
    if (!uuid_equals(&invitation.inviter_id, &call->who.user_id))
        return aq_fail_kind(err, EPERM, "generic-forbidden", "only the inviter changes it");
    r = folder_set_invitation(tx, &invitation.id, permission, err);
    return r < 0 ? r
                 : folder_audit(tx, call, "modify-vfolder-invitation", NULL,
                                json_pack("{s:s, s:s}", "invitee", invitation.invitee, "permission",
                                          params->permission),
                                err);
}

static void folder_invitation_start(struct api *api, struct request *req, folder_run_fn *run)
{
    struct folder_call *call = folder_share_new(api, req, FOLDER_SEE);
    struct folder_share_params *params = call ? call->params : NULL;

    if (!call)
        return;
    if (!params->invitation)
        params->invitation = request_get_param(req, "inv_id");
    call->run = run;
    call->done = folder_reply_empty_object;
    folder_call_write(call);
}

static void folder_on_accept(struct request *req, void *data)
{
    folder_invitation_start(data, req, folder_accept_run);
}

static void folder_on_reject(struct request *req, void *data)
{
    folder_invitation_start(data, req, folder_reject_run);
}

static void folder_on_invitation_update(struct request *req, void *data)
{
    folder_invitation_start(data, req, folder_invitation_update_run);
}

/* ---- a folder of a project: shares ---- */

static const struct field folder_share_fields[] = {
    { "permission|perm", FIELD_STR, 0, AT(permission), 1, 8, .doc = "ro, rw or wd" },
    { "emails", FIELD_STR_LIST, FIELD_REQUIRED, AT(emails), .max = NAMED_MAX,
      .doc = "of members of the project" },
    FIELD_END,
};

static const struct field folder_unshare_fields[] = {
    { "emails", FIELD_STR_LIST, FIELD_REQUIRED, AT(emails), .max = NAMED_MAX },
    FIELD_END,
};

static int folder_set_shares(struct store_tx *tx, struct folder_call *call,
                             enum folder_permission permission, struct aq_error *err)
{
    struct folder_share_params *params = call->params;
    size_t count = params->count;

    params->count = 0;
    for (size_t i = 0; i < count; i++) {
        int r = folder_set_share(tx, &call->folder.id, &params->ids[i], permission, err);

        if (r < 0)
            return r;
        if (r > 0)
            params->emails.items[params->count++] = params->emails.items[i];
    }
    return folder_audit_users(tx, call,
                              permission == FOLDER_NONE ? "unshare-vfolder" : "share-vfolder", err);
}

static int folder_share_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_share_params *params = call->params;
    enum folder_permission permission = FOLDER_READ_WRITE;

    (void)folder_permission_parse(params->permission, &permission);
    return folder_set_shares(tx, call, permission, err);
}

static int folder_unshare_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    return folder_set_shares(tx, call, FOLDER_NONE, err);
}

static void folder_share_done(struct folder_call *call)
{
    folder_reply_emails(call, "shared_emails");
}

static void folder_unshare_done(struct folder_call *call)
{
    folder_reply_emails(call, "unshared_emails");
}

static void folder_on_share(struct request *req, void *data)
{
    struct folder_call *call = folder_share_new(data, req, FOLDER_SHARE);

    if (!call)
        return;
    call->status = 201;
    folder_share_start(call, folder_share_run, folder_share_done);
}

static void folder_on_unshare(struct request *req, void *data)
{
    struct folder_call *call = folder_share_new(data, req, FOLDER_SHARE);

    if (call)
        folder_share_start(call, folder_unshare_run, folder_unshare_done);
}

/* ---- leaving ---- */

static const struct field folder_leave_fields[] = {
    { "shared_user_uuid|sharedUserUUID", FIELD_STR, FIELD_NULLABLE, AT(user), 1, 64,
      .doc = "another user who shall leave; the owner and administrators" },
    FIELD_END,
};

static int folder_leave_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_share_params *params = call->params;
    struct uuid id = call->who.user_id;
    int r;

    if (params->user && uuid_parse(params->user, &id) < 0)
        return api_fail_param(err, "shared_user_uuid", "is no UUID");
    r = folder_set_share(tx, &call->folder.id, &id, FOLDER_NONE, err);
    if (r == 0)
        return problem_no_such(err, "user", "the folder is not shared with that user");
    return r < 0 ? r : folder_audit(tx, call, "leave-vfolder", NULL, NULL, err);
}

static void folder_on_leave(struct request *req, void *data)
{
    struct folder_call *call = folder_share_new(data, req, FOLDER_LEAVE);
    const struct folder_share_params *params = call ? call->params : NULL;

    if (!call)
        return;
    /* Those who may change the folder may take it from others. */
    if (params->user)
        call->op = FOLDER_CHANGE;
    call->states = FOLDER_IN_ANY_STATE;
    call->run = folder_leave_run;
    call->done = folder_reply_empty_object;
    folder_call_write(call);
}

#define CHANGE (API_USER | API_FREEZABLE)

static const struct route folder_share_routes[] = {
    { METHOD_POST, "/folders/{name}/invite", CHANGE, folder_on_invite, folder_invite_fields,
      "Offer a folder to users", .answer = { 201 } },
    { METHOD_GET, "/folders/invitations/list", API_USER, folder_on_invitations, NULL,
      "Folders that the caller is offered" },
    { METHOD_GET, "/folders/invitations/list-sent", API_USER, folder_on_invitations_sent, NULL,
      "Folders that the caller has offered" },
    { METHOD_GET, "/folders/invitations/list_sent", API_USER, folder_on_invitations_sent, NULL,
      "Folders that the caller has offered" },
    { METHOD_POST, "/folders/invitations/accept", CHANGE, folder_on_accept,
      folder_invitation_fields, "Accept a folder" },
    { METHOD_DELETE, "/folders/invitations/delete", CHANGE, folder_on_reject,
      folder_invitation_fields, "Reject a folder that is offered, or withdraw the offer" },
    { METHOD_POST, "/folders/invitations/update/{inv_id}", CHANGE, folder_on_invitation_update,
      folder_invitation_update_fields, "Offer a folder with another permission" },
    { METHOD_POST, "/folders/{name}/share", CHANGE, folder_on_share, folder_share_fields,
      "Give members of a project another permission on its folder", .answer = { 201 } },
    { METHOD_DELETE, "/folders/{name}/unshare", CHANGE, folder_on_unshare, folder_unshare_fields,
      "Take a permission on a project's folder away from members" },
    { METHOD_POST, "/folders/{name}/leave", CHANGE, folder_on_leave, folder_leave_fields,
      "Leave a folder that is shared" },
};
API_ROUTES_END(folder_share);
