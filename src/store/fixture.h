/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h - the first rows of a new database
 *
 * Both keep every row that exists. Blocking; before store_load().
 */
#ifndef AQ_STORE_FIXTURE_H
#define AQ_STORE_FIXTURE_H

#include "store/store.h"

#define ADMIN_EMAIL_MAX 255

struct admin_secrets {
    char password[33];
    char access_key[ACCESS_KEY_MAX];
    char secret_key[41];
};

/* Domain, project, resource group and policy "default", and a superadmin with
 * fresh secrets, which are shown nowhere else. -EEXIST if there is a superadmin
 * already, other than that of store_init_dev().
 */
int store_init_admin(struct store *store, const char *email, struct admin_secrets *ret,
                     struct aq_error *err);

/* The well-known development rows: three users of Backend.AI's stock fixture
 * (admin, domain-admin, user @lablup.com) with their published keys. For
 * listeners on loopback only.
 */
int store_init_dev(struct store *store, struct aq_error *err);

/* Is this the access key, or e-mail and password, of a development row? Everybody
 * knows them: nobody may be let in by them but with store_init_dev().
 */
bool fixture_is_published_key(const char *access_key);
bool fixture_is_published_password(const char *email, const char *password);

#endif
