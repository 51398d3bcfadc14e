/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all features, each of which a directory registers. */
#include "manager/feature_list.h"

#include "manager/call/graphql/gql.h"
#include "manager/call/tasks.h"
#include "manager/booking/booking_feature.h"
#include "manager/cluster/cluster_feature.h"
#include "manager/account/account_feature.h"
#include "manager/etcd/etcd_feature.h"
#include "manager/folder/folder_feature.h"
#include "manager/image/image_feature.h"
#include "manager/scheduling/scheduling_feature.h"
#include "manager/notification/notification_feature.h"
#include "manager/login/login_feature.h"
#include "manager/template/template_feature.h"
#include "manager/session/session_feature.h"
#include "manager/pipeline/pipeline_feature.h"
#include "manager/stream/stream_feature.h"
#include "manager/serving/serving_feature.h"
#include "manager/event/event_feature.h"
#include "manager/live/live_feature.h"
#include "manager/node/node_feature.h"
#include "manager/redis/redis_feature.h"
#include "manager/usage/usage_feature.h"
#include "manager/backendai/backendai_feature.h"

/* The configuration tree is read first: what it says counts for the others. */
/* clang-format off */
const struct feature *const manager_features[] = {
    &cluster_feature,
    &etcd_feature,
    &account_feature,
    &folder_feature,
    &image_feature,
    &scheduling_feature,
    &notification_feature,
    &login_feature,
    &template_feature,
    &session_feature,
    &stream_feature,
    &event_feature,
    &serving_feature,
    &pipeline_feature,
    &booking_feature,
    &live_feature,
    &node_feature,
    &usage_feature,
    &redis_feature,
    &backendai_feature,
    &tasks_feature,
    &gql_feature,
    NULL,
};
/* clang-format on */
