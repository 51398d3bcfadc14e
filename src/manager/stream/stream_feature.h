/* SPDX-License-Identifier: Apache-2.0 */
/* stream_feature.h - connections into sessions: tables of routes in its files */
#ifndef AQ_MANAGER_STREAM_STREAM_FEATURE_H
#define AQ_MANAGER_STREAM_STREAM_FEATURE_H

#include "manager/call/feature.h"

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
