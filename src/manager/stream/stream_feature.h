/* SPDX-License-Identifier: Apache-2.0 */
/* stream_feature.h - connections into sessions: the state that its files share, and their tables of
 * routes
 */
#ifndef AQ_MANAGER_STREAM_STREAM_FEATURE_H
#define AQ_MANAGER_STREAM_STREAM_FEATURE_H

#include "manager/call/feature.h"
#include "manager/stream/stream.h"

struct stream_state {
    struct transfer_limits transfer_limits;
    int64_t execution_timeout_usec; /* of code that is run in a session; 0 = none */
    struct log_quota *log_quota;
    struct app_proxy *app_proxy;
};

API_ROUTES(session_files);
API_ROUTES(session_ssh);
API_ROUTES(logs);
API_ROUTES(pty);
API_ROUTES(app_control);
API_ROUTES(exec);
API_ROUTES(execute);
API_ROUTES(code_stream);
API_ROUTES(tunnel);

extern const struct feature stream_feature;

#endif
