/* SPDX-License-Identifier: Apache-2.0 */
/* session_idle_rest.c - what idle checks say of a session, and keeping it though nobody uses it */
#include <errno.h>

#include "base/clock.h"
#include "manager/session/session_feature.h"
#include "manager/session/session.h"
#include "manager/session/session_view.h"

/* ---- what they say ---- */

/* A monotonic time of 'idle' by the wall clock; 0 is null. */
static void session_idle_write_time(const struct core_idle *idle, const char *key, int64_t usec,
                                    struct jsonw *w)
{
    bool is_time = usec && usec != CORE_IDLE_FOREVER;

    api_write_time(w, key, is_time ? clock_realtime_usec() + usec - idle->now_usec : 0);
}

void session_view_write_idle(const struct core *core, const struct uuid *id, struct jsonw *w)
{
    const struct session *s = core_find_session(core, id);
    const struct idle_limits *limits;
    struct core_idle idle;

    if (!s || !core_read_idle(core, s, &idle)) {
        jsonw_null(w);
        return;
    }
    limits = &idle.limits;
    if (!limits->network_usec && !limits->window_usec && !limits->lifetime_usec) {
        jsonw_null(w);
        return;
    }
    jsonw_object_begin(w);
    session_idle_write_time(&idle, "ends_at", idle.report.at_usec, w);
    jsonw_member_str(w, "reason",
                     idle.report.by == IDLE_CHECKS ? NULL : idle_check_reason(idle.report.by));
    jsonw_member_bool(w, "ends_soon", idle.is_warned);
    jsonw_member_bool(w, "can_extend",
                      idle.report.by == IDLE_NETWORK || idle.report.by == IDLE_UTILIZATION);
    session_idle_write_time(&idle, "extended_until",
                            idle.extended_usec > idle.now_usec ? idle.extended_usec : 0, w);
    jsonw_member_bool(w, "exempt", idle.exempt_usec > idle.now_usec);
    session_idle_write_time(&idle, "exempt_until",
                            idle.exempt_usec > idle.now_usec ? idle.exempt_usec : 0, w);
    jsonw_key(w, "checks");
    core_idle_write_checks(&idle, w);
    jsonw_object_end(w);
}

void session_view_write_idle_end(const struct core *core, const struct uuid *id, struct jsonw *w)
{
    const struct session *s = core_find_session(core, id);
    char iso[CLOCK_ISO_MAX];
    struct core_idle idle;

    int64_t usec = 0;

    if (s && core_read_idle(core, s, &idle) && idle.is_warned)
        usec = clock_realtime_usec() + idle.report.at_usec - idle.now_usec + USEC_PER_SEC / 2;
    /* Rounded to seconds: the two clocks drift slightly, and each change is sent to consoles. */
    jsonw_str(w, usec ? clock_format_iso(usec - usec % USEC_PER_SEC, iso) : NULL);
}

void session_view_write_idle_checks(const struct core *core, const struct uuid *id, struct jsonw *w)
{
    const struct session *s = core_find_session(core, id);
    struct core_idle idle;

    core_idle_write_checks(s && core_read_idle(core, s, &idle) ? &idle : NULL, w);
}

/* ---- extension ---- */

struct extend_params {
    const char *owner_access_key;
    int64_t duration_usec;
};

#define EXTENSION_MAX_SEC (366 * 86400)

static const struct field extend_fields[] = {
    { "duration", FIELD_DURATION, 0, offsetof(struct extend_params, duration_usec), 1,
      EXTENSION_MAX_SEC, .doc = "time from now; default: the session's idle timeout" },
    OWNER_FIELD(struct extend_params, owner_access_key),
    FIELD_END,
};

static void session_idle_on_extended(void *data, int r, const struct aq_error *err,
                                     int64_t until_usec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct request *req = data;

    if (r < 0) {
        request_fail(req, err);
        return;
    }
    jsonw_object_begin(&w);
    api_write_time(&w, "extended_until", until_usec);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void session_idle_on_extend(struct request *req, void *data)
{
    struct extend_params params = { 0 };
    const struct session *session;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0)
        request_fail(req, &err);
    else if ((session = session_find_live(api, req, params.owner_access_key)))
        core_extend_session(api->core, &session->id, params.duration_usec, api_who(api, req),
                            session_idle_on_extended, req);
}

/* ---- exemption ---- */

struct exempt_params {
    const char *owner_access_key;
    int64_t duration_usec;
    bool off;
};

static const struct field exempt_fields[] = {
    { "duration", FIELD_DURATION, 0, offsetof(struct exempt_params, duration_usec), 1,
      EXTENSION_MAX_SEC, .doc = "time from now; default: until the session ends" },
    { "off", FIELD_BOOL, 0, offsetof(struct exempt_params, off), .doc = "remove the exemption" },
    OWNER_FIELD(struct exempt_params, owner_access_key),
    FIELD_END,
};

static void session_idle_on_exempt(struct request *req, void *data)
{
    struct exempt_params params = { 0 };
    const struct session *session;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && params.off && params.duration_usec)
        api_fail_param(&err, "duration", "cannot be combined with off");
    if (err.code)
        request_fail(req, &err);
    else if ((session = session_find_live(api, req, params.owner_access_key)))
        core_exempt_session(api->core, &session->id, params.off ? -1 : params.duration_usec,
                            api_who(api, req), api_reply_done, req);
}

static const struct route session_idle_routes[] = {
    { METHOD_POST, "/aliquot/v1/sessions/{name}/extend", API_USER | API_FREEZABLE,
      session_idle_on_extend, extend_fields, "Keep a session for a time though nobody uses it" },
    { METHOD_POST, "/aliquot/v1/sessions/{name}/exempt", API_ADMIN | API_FREEZABLE,
      session_idle_on_exempt, exempt_fields, "Exempt a session from idle checks",
      .answer = { 204 } },
};
API_ROUTES_END(session_idle);
