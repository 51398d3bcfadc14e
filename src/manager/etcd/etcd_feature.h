/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_feature.h - registers etcd with the manager */
#ifndef AQ_MANAGER_ETCD_ETCD_FEATURE_H
#define AQ_MANAGER_ETCD_ETCD_FEATURE_H

#include "manager/call/feature.h"

extern const struct feature etcd_feature;

#endif
