/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.h - domains, projects, users, keypairs, policies, resource groups
 *
 * What the scheduler and the lifecycle need stays
 * in memory; the rest of a row is read by SQL.
 */
#ifndef AQ_MODEL_ACCOUNTS_H
#define AQ_MODEL_ACCOUNTS_H

#include "model/domain.h"
#include "model/keypair.h"
#include "model/keypair_policy.h"
#include "model/project.h"
#include "model/resource_group.h"
#include "model/session.h"
#include "model/user.h"

#endif
