/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions of which type can do. */
#include "model/session_feature.h"

#include <errno.h>

static const struct {
    const char *name;
    bool has[SESSION_SYSTEM + 1];
} session_features[SESSION_FEATURE_COUNT] = {
    [SESSION_CODE] = { "code that is run by requests", { [SESSION_INTERACTIVE] = true } },
    [SESSION_APPS] = { "apps",
                       { [SESSION_INTERACTIVE] = true,
                         [SESSION_BATCH] = true,
                         [SESSION_INFERENCE] = true } },
    [SESSION_SSH] = { "SSH",
                      { [SESSION_INTERACTIVE] = true,
                        [SESSION_BATCH] = true,
                        [SESSION_INFERENCE] = true,
                        [SESSION_SYSTEM] = true } },
};

int session_feature_check(enum session_type type, enum session_feature feature,
                          struct aq_error *err)
{
    if (session_features[feature].has[type])
        return 0;
    return aq_fail_kind(err, EPERM, "session-type-lacks-feature",
                        "sessions of the type %s do not have %s", session_type_name(type),
                        session_features[feature].name);
}
