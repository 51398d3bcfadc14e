/* SPDX-License-Identifier: Apache-2.0 */
/* claim.h - what a manager says of itself: its name, its addresses, its certificate */
#ifndef AQ_MANAGER_CLAIM_H
#define AQ_MANAGER_CLAIM_H

#include "manager/conf.h"
#include "store/leadership.h"

struct pki_ca;

/* Name, addresses and version by the settings, and a new incarnation: once in a process. The name
 * is that of the settings, else of an earlier start (the file 'name' of the state folder, which is
 * written here if it lacks), else the machine's. -EINVAL names the setting.
 */
int manager_claim_make(const struct manager_conf *conf, struct leader_claim *ret,
                       struct aq_error *err);
/* The same without writing the name. */
int manager_claim_read(const struct manager_conf *conf, struct leader_claim *ret,
                       struct aq_error *err);

/* A fresh key and a certificate "manager:NAME" by the cluster's authority, which every manager has:
 * for its connections to the leader. The caller frees both texts.
 */
int manager_certificate_make(struct pki_ca *ca, const char *name, char **ret_cert, char **ret_key,
                             struct aq_error *err);

#endif
